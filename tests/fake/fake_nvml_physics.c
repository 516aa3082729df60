/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_physics.c - a GPU whose power follows from its clock, and that from what is
 * set; its energy is what was drawn since this process first asked. */
#include "fake_nvml_call.h"

#include "made_card.h"

/* How long a card takes to get warm, as it were. */
static const double warm_up_s = 5;

bool fake_has_physics(const struct nvmlDevice_st *gpu)
{
    return gpu->physics_idle > 0;
}

static double clock_of(const struct nvmlDevice_st *gpu, const struct made_card *card)
{
    double highest = fake_limited_clock(gpu, gpu->clock_graphics_max);
    double by_power = made_clock(card, fake_enforced_limit(gpu));

    return fmin(by_power, highest / gpu->clock_graphics_max);
}

double fake_physical_power(const struct nvmlDevice_st *gpu, double time)
{
    const struct made_card card = { .idle = gpu->physics_idle,
                                    .linear = gpu->physics_linear,
                                    .cubic = gpu->physics_cubic };
    double leak = gpu->physics_leak * (1 - exp(-time / warm_up_s));
    uint64_t seed = (uint64_t)(time * 1e3) * 2654435761U + 1;

    return made_power(&card, clock_of(gpu, &card)) *
           (1 + leak + gpu->physics_noise * made_normal(&seed));
}

double fake_physical_energy(struct nvmlDevice_st *gpu, double time)
{
    if (time > gpu->physics_asked_at)
        gpu->physics_joules +=
            fake_physical_power(gpu, time) * (time - gpu->physics_asked_at);
    gpu->physics_asked_at = fmax(time, gpu->physics_asked_at);
    return gpu->energy.start + gpu->physics_joules;
}
