/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c - signals that end a command when it has tidied up. */
#include "interrupt.h"

#include <stddef.h>

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

enum { COUNT = sizeof(numbers) / sizeof(numbers[0]) };

static volatile sig_atomic_t caught; /* the signal; 0: none */
static struct sigaction before[COUNT];

static void note(int number)
{
    if (caught) {
        signal(number, SIG_DFL);
        raise(number); /* comes when this handler is left */
    }
    caught = number;
}

const volatile sig_atomic_t *interrupt_catch(void)
{
    const struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART };

    caught = 0;
    for (int i = 0; i < COUNT; i++) {
        if (sigaction(numbers[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
    return &caught;
}

int interrupt_end(int code)
{
    for (int i = 0; i < COUNT; i++)
        sigaction(numbers[i], &before[i], NULL);
    if (caught && code != 0)
        raise(caught);
    return code;
}
