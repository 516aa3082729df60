/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_number.c - the numbers of names in a ring. A name keeps its number while its
 * string moves, as a program may copy it for each call: whether calls are clocked, and
 * where they are folded, is kept by number.
 */
#include "region/mark/region_writer.h"

/* A name has one of these numbers that follow the hash of its text: so many names in use
 * rarely replace one another, and few texts are compared. */
enum { NUMBERS = 16 };

uint32_t wm_region_writer_hash(const char *name, size_t length)
{
    uint32_t hash = 2166136261; /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619;
    return hash;
}

uint32_t wm_region_writer_find_text(const struct wm_region_writer *writer, uint32_t hash,
                                    const char *name, size_t length)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint32_t number = (hash + i) % WM_RING_NAMES;
        const char *text = writer->names[number];
        if (text && writer->hashes[number] == hash && strncmp(text, name, length) == 0 &&
            text[length] == '\0')
            return number;
    }
    return WM_REGION_NO_NAME;
}

uint32_t wm_region_writer_take_number(struct wm_region_writer *writer, uint32_t hash,
                                      const char *name, size_t length)
{
    uint32_t number = (hash + writer->next_number++ % NUMBERS) % WM_RING_NAMES;

    for (uint32_t i = 0; i < NUMBERS && writer->names[number]; i++)
        number = (hash + writer->next_number++ % NUMBERS) % WM_RING_NAMES;
    /* All are forgotten when there are too many: what is used will be back. */
    if (WM_REGION_TEXTS - writer->text_used < length + 1) {
        memset(writer->names, 0, sizeof(writer->names));
        memset(writer->places, 0, sizeof(writer->places));
        writer->text_used = 0;
    }
    char *text = writer->texts + writer->text_used;
    memcpy(text, name, length);
    text[length] = '\0';
    writer->text_used += length + 1;
    writer->names[number] = text;
    writer->hashes[number] = hash;
    writer->unfolded[number] = 0;
    return number;
}

void wm_region_writer_note_place(struct wm_region_writer *writer, uint32_t number,
                                 const char *name)
{
    uint32_t place = wm_region_writer_place(name);

    place += writer->next_place[place / 2]++ & 1;
    writer->places[place].pointer = name;
    writer->places[place].number = number;
}
