/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_stdin.c - what a bundled jansson has for `stdin`.
 *
 * It compares the file that it reads with it, for the name of the file in messages, and
 * reads from memory here. The linker's --wrap=stdin puts this in its place.
 */
#include <stdio.h>

extern FILE *__wrap_stdin;
FILE *__wrap_stdin;
