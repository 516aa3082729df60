/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.h - the command's NVTX ranges become regions, by a library that it loads itself. */
#ifndef NVTX_H
#define NVTX_H

#include "cmd.h"

/* Puts that library into the environment; CMD_DONE, or a failure that it has reported. */
int nvtx_inject(const char *command, const struct cmd_streams *io);

#endif
