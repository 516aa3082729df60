/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tracking_sqlite.c - hostile tracking files of gpu_tracker's in SQLite;
 * tests/data/gpu_tracker has seeds. */
#include <stdint.h>

#include "fuzz_gpu_tracker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_write(data, size, ".sqlite");
    fuzz_tracking(fuzz_path);
    return 0;
}
