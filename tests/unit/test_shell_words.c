/* SPDX-License-Identifier: Apache-2.0 */
/* test_shell_words.c - a command line in one text becomes words. */
#include "shell_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* The words, each in <>; or the problem. */
static char *split(const char *text)
{
    char **words = NULL, *shown = NULL;
    const char *problem = NULL;
    size_t count = 0, size;
    FILE *out = open_memstream(&shown, &size);

    assert_non_null(out);
    if (shell_words_split(text, &words, &count, &problem)) {
        for (size_t i = 0; i < count; i++)
            fprintf(out, "<%s>", words[i]);
        assert_null(words[count]);
    } else {
        fputs(problem, out);
    }
    fclose(out);
    free(words);
    return shown;
}

static void test_words(void **state)
{
#define DOUBLE_OPEN "a double quote is not closed"
#define SINGLE_OPEN "a single quote is not closed"
#define LAST_BACKSLASH "there is nothing behind the backslash at its end"
    static const struct {
        const char *text, *words;
    } rows[] = {
        { "ls -l -a", "<ls><-l><-a>" },
        { "a", "<a>" },
        { " \t\n\v\f\r a  b\t\n", "<a><b>" },
        { "bash -c 'sleep 1'", "<bash><-c><sleep 1>" },
        { "bash -c \"echo 'x y'\"", "<bash><-c><echo 'x y'>" },
        { "a'b c'd", "<ab cd>" },
        { "a\"b c\"'d e'f", "<ab cd ef>" },
        { "'' \"\" a''", "<><><a>" },
        { "a\\ b", "<a b>" },
        { "\\'a\\\"\\\\", "<'a\"\\>" },
        { "'a\\b' 'c\\'", "<a\\b><c\\>" },
        { "\"\\$x \\`y\\` \\\" \\\\ \\n\"", "<$x `y` \" \\ \\n>" },
        { "a \\\n b", "<a><b>" },
        { "a\\\nb", "<ab>" },
        { "\"a\\\nb\"", "<ab>" },
        { "a \\\n", "<a>" },
        { "\xc3\xa9 '\xff'", "<\xc3\xa9><\xff>" },

        /* Nothing else of a shell. */
        { "echo $HOME *.c ~ && x | y > z # w; !", "<echo><$HOME><*.c><~><&&><x><|><y><>><z>"
                                                  "<#><w;><!>" },
        { "A=1 b", "<A=1><b>" },
        { "$'a' `b`", "<$a><`b`>" },

        { "", "" },
        { "  \n ", "" },
        { "\\\n", "" },
        { "'", SINGLE_OPEN },
        { "a 'b", SINGLE_OPEN },
        { "it's", SINGLE_OPEN },
        { "'a\\'b'", SINGLE_OPEN },
        { "\"", DOUBLE_OPEN },
        { "a \"b 'c'", DOUBLE_OPEN },
        { "\"a\\\"", DOUBLE_OPEN },
        { "\"a\\", DOUBLE_OPEN },
        { "'a' \"b", DOUBLE_OPEN },
        { "\"'", DOUBLE_OPEN },
        { "'\"", SINGLE_OPEN },
        { "\\", LAST_BACKSLASH },
        { "a \\", LAST_BACKSLASH },
        { "a\\\\\\", LAST_BACKSLASH },
        { "'a'\\", LAST_BACKSLASH },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *shown = split(rows[i].text);
        if (strcmp(shown, rows[i].words) != 0)
            fail_msg("'%s': %s, not %s", rows[i].text, shown, rows[i].words);
        free(shown);
    }
}

static void test_most_words(void **state)
{
    char text[2 * 1000];
    const char *problem;
    char **words;
    size_t count;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = i % 2 ? ' ' : 'x';
    text[sizeof(text) - 1] = '\0';
    assert_true(shell_words_split(text, &words, &count, &problem));
    assert_int_equal(count, 1000);
    assert_string_equal(words[999], "x");
    free(words);
}

static void test_out_of_memory(void **state)
{
    const char *problem = NULL;
    char **words;
    size_t count;

    (void)state;
    test_fail_allocation(0);
    assert_false(shell_words_split("a b", &words, &count, &problem));
    test_fail_allocation(-1);
    assert_string_equal(problem, "out of memory");
}

UNIT(shell_words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_most_words),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
