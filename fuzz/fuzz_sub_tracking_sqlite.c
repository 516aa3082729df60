/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sub_tracking_sqlite.c - hostile sub-tracking files in SQLite, read and combined;
 * tests/data/gpu_tracker has seeds. */
#include <stdint.h>

#include "fuzz_gpu_tracker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_write(data, size, ".sqlite");
    fuzz_sub_tracking(fuzz_path, fuzz_target);
    return 0;
}
