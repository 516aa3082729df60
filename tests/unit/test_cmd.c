/* SPDX-License-Identifier: Apache-2.0 */
/* test_cmd.c - the command line: words, environment and configuration file, and
 * what is said when one of them is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "cmd_config.h"
#include "test.h"
#include "wattmeter/format.h"
#include "wattmeter/report.h"
#include "wattmeter/tracker.h"

/* A command that prints what it got. */
struct echo_args {
    bool flag, quiet;
    const char *text;
    struct cmd_list list;
    int64_t duration_ns;
    double number;
    struct cmd_count count;
    struct cmd_list operands;
};

#define ECHO(member) offsetof(struct echo_args, member)

static const struct cmd_option echo_options[] = {
    { .letter = 'f', .name = "flag", .slot = ECHO(flag), .help = "a flag" },
    { .letter = 'q', .name = "quiet", .slot = ECHO(quiet), .help = "too" },
    { .letter = 't',
      .name = "text",
      .slot = ECHO(text),
      .placeholder = "TEXT",
      .help = "any text" },
    { .letter = 'l',
      .name = "list",
      .type = CMD_LIST,
      .slot = ECHO(list),
      .placeholder = "WORD",
      .help = "a word more" },
    { 0 },
};
static const struct cmd_option number_options[] = {
    { .letter = 'd',
      .name = "duration",
      .type = CMD_DURATION,
      .slot = ECHO(duration_ns),
      .placeholder = "TIME",
      .help = "a time",
      .min = "1ms",
      .max = "1h" },
    { .name = "number",
      .type = CMD_NUMBER,
      .slot = ECHO(number),
      .placeholder = "N",
      .help = "a number",
      .min = "0.5",
      .max = "8" },
    { .name = "a-count",
      .type = CMD_COUNT,
      .slot = ECHO(count),
      .placeholder = "N",
      .help = "a count" },
    { 0 },
};
static const struct cmd_option *const all_options[] = { echo_options, number_options,
                                                        NULL };

static void print_list(FILE *out, const char *name, const struct cmd_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        fprintf(out, "%s:%s ", name, list->words[i]);
}

static int run_echo(const void *opaque, const struct cmd_streams *io)
{
    const struct echo_args *args = opaque;

    if (args->flag)
        fputs("flag ", io->out);
    if (args->quiet)
        fputs("quiet ", io->out);
    if (args->text)
        fprintf(io->out, "text:%s ", args->text);
    print_list(io->out, "list", &args->list);
    if (args->duration_ns)
        fprintf(io->out, "ns:%lld ", (long long)args->duration_ns);
    if (args->number != 0)
        fprintf(io->out, "number:%g ", args->number);
    if (args->count.given)
        fprintf(io->out, "count:%llu ", (unsigned long long)args->count.value);
    print_list(io->out, "operand", &args->operands);
    return CMD_DONE;
}

static const struct cmd cmd_echo = {
    .name = "echo",
    .summary = "Print what it got.",
    .details = "For tests.",
    .example = "wattmeter echo",
    .operands = "WORD...",
    .operands_slot = ECHO(operands),
    .operands_max = 2,
    .options = all_options,
    .args_size = sizeof(struct echo_args),
    .run = run_echo,
};
static const struct cmd cmd_wrap = {
    .name = "wrap",
    .summary = "The same with somebody else's command line.",
    .details = "For tests.",
    .example = "wattmeter wrap ls -l",
    .operands = "[--] COMMAND [ARG...]",
    .operands_slot = ECHO(operands),
    .operands_min = 1,
    .operands_max = (size_t)-1,
    .runs_command = true,
    .options = all_options,
    .args_size = sizeof(struct echo_args),
    .run = run_echo,
};
static const struct cmd *const table[] = { &cmd_echo, &cmd_wrap, NULL };

struct said {
    int code;
    char *out, *chat;
};

static void release(struct said *said)
{
    free(said->out);
    free(said->chat);
}

/* Runs a command line, whose words are separated by '|'. */
static struct said run_line(const struct cmd *const commands[], const char *line)
{
    char *copy = strdup(line), *rest = copy;
    char *words[24] = { (char[]) { "wattmeter" } };
    struct said said = { 0 };
    size_t out_size, chat_size;
    int count = 1;

    while (rest && *line)
        words[count++] = strsep(&rest, "|");
    const struct cmd_streams io = {
        .out = open_memstream(&said.out, &out_size),
        .chat = open_memstream(&said.chat, &chat_size),
    };
    said.code = cmd_main(commands, count, words, &io);
    fclose(io.out);
    fclose(io.chat);
    free(copy);
    return said;
}

static void check(const char *line, const struct said *said, int code, const char *out,
                  const char *chat)
{
    if (said->code != code || strcmp(said->out, out) != 0 || !strstr(said->chat, chat) ||
        (chat[0] == '\0' && said->chat[0]))
        fail_msg("%s: status %d, '%s', '%s'", line, said->code, said->out, said->chat);

    /* What is said is one line. */
    if (said->chat[0])
        assert_ptr_equal(strchr(said->chat, '\n'), said->chat + strlen(said->chat) - 1);
}

static void test_words(void **state)
{
    static const struct {
        const char *line, *out;
    } rows[] = {
        { "echo", "" },
        { "echo|a|b", "operand:a operand:b " },
        { "echo|a|-f|b", "flag operand:a operand:b " },
        { "echo|--flag|-t|x", "flag text:x " },
        { "echo|-fq", "flag quiet " },
        { "echo|-ftx", "flag text:x " },
        { "echo|-ft|x", "flag text:x " },
        { "echo|-tf", "text:f " },
        { "echo|--text=a=b", "text:a=b " },
        { "echo|--text|--flag", "text:--flag " },
        { "echo|-t|-f", "text:-f " },
        { "echo|-t|x|--text=x", "text:x " },
        { "echo|-l|a|--list=b|-lc", "list:a list:b list:c " },
        { "echo|--|-f|--flag", "operand:-f operand:--flag " },
        { "echo|-|-f", "flag operand:- " },
        { "echo|-d|100ms", "ns:100000000 " },
        { "echo|-d0.25", "ns:250000000 " },
        { "echo|--number|2.5|--a-count=0", "number:2.5 count:0 " },
        { "wrap|ls", "operand:ls " },
        { "wrap|-f|ls|-l|--flag", "flag operand:ls operand:-l operand:--flag " },
        { "wrap|-f|--|ls|--|-q", "flag operand:ls operand:-- operand:-q " },
        { "wrap|--|-f", "operand:-f " },
        { "wrap|--|--|x", "operand:-- operand:x " },
        { "wrap|-t|x|sh|-c|", "text:x operand:sh operand:-c operand: " },
        { "wrap|ls|--help", "operand:ls operand:--help " },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said said = run_line(table, rows[i].line);
        check(rows[i].line, &said, CMD_DONE, rows[i].out, "");
        release(&said);
    }
}

static void test_wrong_words(void **state)
{
    static const struct {
        const char *line, *chat;
    } rows[] = {
        { "eco", "there is no command 'eco'; did you mean 'echo'?" },
        { "wrpa", "did you mean 'wrap'?" },
        { "ech", "did you mean 'echo'?" },
        { "nothing", "there is no command 'nothing'; see 'wattmeter --help'" },
        { "e", "there is no command 'e'; see" },
        { "-q|echo", "'-q' stands before the command" },
        { "--text|echo", "'--text' stands before the command" },
        { "--verson", "there is no option '--verson'; did you mean '--version'?" },
        { "--hepl", "there is no option '--hepl'; did you mean '--help'?" },
        { "--ver", "there is no option '--ver'; did you mean '--version'?" },
        { "--", "'--' stands before the command" },
        { "-v", "'-v' stands before the command" },
        { "hepl", "there is no command 'hepl'; did you mean 'help'?" },
        { "help|eco", "there is no command 'eco'; did you mean 'echo'?" },
        { "help|--flag", "'--flag' stands before the command" },
        { "help|", "there is no command ''; see 'wattmeter --help'" },
        { "help|echo|wrap", "wattmeter help: 'wrap' is one word too many" },
        { "echo|--flags", "there is no option '--flags'; did you mean '--flag'?" },
        { "echo|--falg", "did you mean '--flag'?" },
        { "echo|--dur=1s", "there is no option '--dur'; did you mean '--duration'?" },
        { "echo|--xyzzy", "there is no option '--xyzzy'; see 'wattmeter echo --help'" },
        { "echo|-x", "there is no option '-x'" },
        { "echo|-fx", "there is no option '-fx'" },
        { "echo|--flag=yes", "--flag takes no value" },
        { "echo|--text", "--text needs TEXT" },
        { "echo|-t", "-t needs TEXT" },
        { "echo|--text=", "--text: an empty word is not TEXT" },
        { "echo|-l|", "--list: an empty word is not WORD" },
        { "echo|-t|x|--text=y", "--text is given twice: 'x' and 'y'" },
        { "echo|-t|x://y:z@|-tp", "--text is given twice: '...://...' and 'p'" },
        { "echo|-d|1s|-d|2s", "--duration is given twice: '1s' and '2s'" },
        { "echo|a|b|c", "'c' is one word too many" },
        { "wrap",
          "nothing to wrap; usage: wattmeter wrap [OPTIONS] [--] COMMAND [ARG...]" },
        { "wrap|--", "nothing to wrap" },
        { "wrap|-f", "nothing to wrap" },
        { "echo|-d|1x", "--duration: '1x' is not a duration" },
        { "echo|-d|", "an empty word is not TIME" },
        { "echo|-d|0.9ms", "'0.9ms' is out of range, which is 1ms to 1h" },
        { "echo|-d|61min", "'61min' is out of range" },
        { "echo|-d|-1s", "'-1s' is out of range, which is 1ms to 1h" },
        { "echo|-d|-1x", "'-1x' is not a duration" },
        { "echo|-d|--1s", "'--1s' is not a duration" },
        { "echo|--number|0.4", "'0.4' is out of range, which is 0.5 to 8" },
        { "echo|--number|8.1", "'8.1' is out of range" },
        { "echo|--number|-1", "'-1' is out of range, which is 0.5 to 8" },
        { "echo|--number|-", "'-' is not a number" },
        { "echo|--number|nan", "'nan' is not a number" },
        { "echo|--number|2e0", "'2e0' is not a number" },
        { "echo|--a-count|-1", "'-1' is not a whole number" },
        { "echo|--a-count|1.0", "'1.0' is not a whole number" },
        { "echo|--a-count|18446744073709551616", "is not a whole number" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said said = run_line(table, rows[i].line);
        check(rows[i].line, &said, CMD_MISUSED, "", rows[i].chat);
        release(&said);
    }
}

static void test_durations(void **state)
{
    static const struct {
        const char *word;
        int64_t ns; /* -1: not a duration */
    } rows[] = {
        { "1", 1000000000 },
        { "0.5", 500000000 },
        { "100ms", 100000000 },
        { "250us", 250000 },
        { "1.5s", 1500000000 },
        { "2min", INT64_C(120000000000) },
        { "1h", INT64_C(3600000000000) },
        { "2d", INT64_C(172800000000000) },
        { ".5", 500000000 },
        { "5.", INT64_C(5000000000) },
        { "0", 0 },
        { "", -1 },
        { ".", -1 },
        { "ms", -1 },
        { "1 s", -1 },
        { " 1s", -1 },
        { "1s ", -1 },
        { "1m", -1 },
        { "1S", -1 },
        { "1.2.3", -1 },
        { "1,5", -1 },
        { "-1", -1 },
        { "+1", -1 },
        { "1e3", -1 },
        { "0x10", -1 },
        { "inf", -1 },
        { "nan", -1 },
        { "1000000d", -1 },
        { "99999999999999999999999999999999999999s", -1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ns = -1;
        bool valid = cmd_parse_duration(rows[i].word, &ns);
        if (valid != (rows[i].ns >= 0) || ns != rows[i].ns)
            fail_msg("'%s': %lld", rows[i].word, (long long)ns);
    }
}

/* Flag, environment, section of the command, settings of all, in this order. */
static void test_defaults(void **state)
{
    static const struct {
        const char *line, *variable, *value, *config, *out;
    } rows[] = {
        { "echo", NULL, NULL, "", "" },
        { "echo", "WATTMETER_TEXT", "env", "", "text:env " },
        { "echo", "WATTMETER_TEXT", "", "", "" },
        { "echo", "WATTMETER_A_COUNT", "7", "", "count:7 " },
        { "echo", "WATTMETER_FLAG", "yes", "", "flag " },
        { "echo", "WATTMETER_FLAG", "0", "", "" },
        { "echo", "WATTMETER_LIST", "a b", "", "list:a b " },
        { "echo", NULL, NULL, "text = file", "text:file " },
        { "echo", NULL, NULL, "text=one\ntext = two # a comment\n", "text:two " },
        { "echo", NULL, NULL, "[echo]\ntext = mine\n", "text:mine " },
        { "echo", NULL, NULL, "[wrap]\ntext = not mine\n", "" },
        { "echo", NULL, NULL, "[echo]\ntext=mine\n[wrap]\ntext=x\n", "text:mine " },
        { "echo", NULL, NULL, "text = all\n[echo]\ntext = mine", "text:mine " },
        { "echo", NULL, NULL, "list = a\nlist = b\n", "list:a list:b " },
        { "echo", NULL, NULL, "# text = none\n\n \t\r\n[echo]\r\nflag = on\r\n", "flag " },
        { "echo", NULL, NULL, "text = a#b", "text:a#b " },
        { "echo", "WATTMETER_TEXT", "env", "text = file", "text:env " },
        { "echo|-t|word", "WATTMETER_TEXT", "env", "text = file", "text:word " },
        { "echo|-l|word", "WATTMETER_LIST", "env", "list = file", "list:word " },
        { "echo|-f", "WATTMETER_FLAG", "no", "flag = no", "flag " },
        { "echo|-d|2s", "WATTMETER_DURATION", "rubbish", "duration = rubbish",
          "ns:2000000000 " },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        test_write_file(*state, "wattmeter/config", rows[i].config);
        if (rows[i].variable)
            setenv(rows[i].variable, rows[i].value, 1);
        struct said said = run_line(table, rows[i].line);
        if (rows[i].variable)
            unsetenv(rows[i].variable);
        check(rows[i].config, &said, CMD_DONE, rows[i].out, "");
        release(&said);
    }
}

static void test_wrong_defaults(void **state)
{
    static const struct {
        const char *variable, *value, *config, *chat;
    } rows[] = {
        { "WATTMETER_DURATION", "5x", "", "WATTMETER_DURATION: '5x' is not a duration" },
        { "WATTMETER_DURATION", "2h", "", "WATTMETER_DURATION: '2h' is out of range" },
        { "WATTMETER_FLAG", "perhaps", "", "WATTMETER_FLAG: 'perhaps' is not yes or no" },
        { NULL, NULL, "duration = 5x", "config:1: duration: '5x' is not a duration" },
        { NULL, NULL, "\n\nflag = maybe", "config:3: flag: 'maybe' is not yes or no" },
        { NULL, NULL, "texd = x", "config:1: there is no option 'texd'" },
        { NULL, NULL, "[echo]\ntexd = x", "config:2: there is no option 'texd' of echo" },
        { NULL, NULL, "[eco]\ntext = x", "config:2: there is no command 'eco'" },
        { NULL, NULL, "text", "config:1: there is no '='" },
        { NULL, NULL, "text =", "config:1: there is no value" },
        { NULL, NULL, "text = # x", "config:1: there is no value" },
        { NULL, NULL, "= x", "config:1: there is no name" },
        { NULL, NULL, "[echo", "config:1: a section is written as [command]" },
        { NULL, NULL, "\n[echo] text = x", "config:2: a section is written as [command]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        test_write_file(*state, "wattmeter/config", rows[i].config);
        if (rows[i].variable)
            setenv(rows[i].variable, rows[i].value, 1);
        struct said said = run_line(table, "echo");
        if (rows[i].variable)
            unsetenv(rows[i].variable);
        check(rows[i].config, &said, CMD_MISUSED, "", rows[i].chat);
        release(&said);
    }
}

static void test_where_the_file_is(void **state)
{
    char path[256];

    test_write_file(*state, "wattmeter/config", "text = xdg\n");
    test_write_file(*state, "home/.config/wattmeter/config", "text = home\n");
    test_write_file(*state, "folder/wattmeter/config/x", "");
    snprintf(path, sizeof(path), "%s/home", (const char *)*state);
    setenv("HOME", path, 1);

    struct said said = run_line(table, "echo");
    check("XDG_CONFIG_HOME", &said, CMD_DONE, "text:xdg ", "");
    release(&said);

    setenv("XDG_CONFIG_HOME", "relative", 1);
    said = run_line(table, "echo");
    check("a relative XDG_CONFIG_HOME", &said, CMD_DONE, "text:home ", "");
    release(&said);

    unsetenv("XDG_CONFIG_HOME");
    said = run_line(table, "echo");
    check("HOME", &said, CMD_DONE, "text:home ", "");
    release(&said);

    unsetenv("HOME");
    said = run_line(table, "echo");
    check("no HOME", &said, CMD_DONE, "", "");
    release(&said);

    snprintf(path, sizeof(path), "%s/folder", (const char *)*state);
    setenv("XDG_CONFIG_HOME", path, 1);
    said = run_line(table, "echo");
    check("a folder", &said, CMD_MISUSED, "", "config: is not a regular file");
    release(&said);

    /* Which would hold us up for ever, and which has no end. */
    snprintf(path, sizeof(path), "%s/wattmeter/config", (const char *)*state);
    setenv("XDG_CONFIG_HOME", *state, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    said = run_line(table, "echo");
    check("a pipe", &said, CMD_MISUSED, "", "config: is not a regular file");
    release(&said);

    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0);
    said = run_line(table, "echo");
    check("a device", &said, CMD_MISUSED, "", "config: is not a regular file");
    release(&said);
}

static void test_large_and_binary_files(void **state)
{
    static char large[CMD_CONFIG_LIMIT + 2], many[CMD_CONFIG_LIMIT];
    static const char binary[] = "text = a\0b\n";
    char path[256];

    memset(large, '\n', sizeof(large) - 1);
    test_write_file(*state, "wattmeter/config", large);
    struct said said = run_line(table, "echo");
    check("large", &said, CMD_MISUSED, "", "larger than 65536 bytes");
    release(&said);

    large[CMD_CONFIG_LIMIT] = '\0';
    test_write_file(*state, "wattmeter/config", large);
    said = run_line(table, "echo");
    check("just not too large", &said, CMD_DONE, "", "");
    release(&said);

    for (size_t i = 0; i <= CMD_CONFIG_SETTINGS; i++)
        memcpy(many + 9 * i, "text = x\n", 9);
    test_write_file(*state, "wattmeter/config", many);
    said = run_line(table, "echo");
    check("many", &said, CMD_MISUSED, "", "config:1001: there are too many settings");
    release(&said);

    snprintf(path, sizeof(path), "%s/wattmeter/config", (const char *)*state);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(binary, 1, sizeof(binary), file), sizeof(binary));
    assert_int_equal(fclose(file), 0);
    said = run_line(table, "echo");
    check("binary", &said, CMD_MISUSED, "", "config:1: this is not a text");
    release(&said);
}

/* Whether two lines of words come to the same, and well. */
static void check_same(const char *line, const char *other)
{
    struct said said = run_line(table, line), expected = run_line(table, other);

    check(line, &said, CMD_DONE, expected.out, "");
    assert_true(said.out[0]);
    release(&said);
    release(&expected);
}

static void test_help(void **state)
{
    test_write_file(*state, "wattmeter/config", "rubbish");

    struct said said = run_line(table, "echo|--help");
    check("--help", &said, CMD_DONE, said.out, "");
    assert_non_null(strstr(said.out, "usage: wattmeter echo [OPTIONS] WORD..."));
    assert_non_null(strstr(said.out, "  -d, --duration TIME       a time\n"));
    assert_non_null(strstr(said.out, "      --a-count N           a count\n"));
    release(&said);

    said = run_line(table, "wrap|-fh");
    check("-h", &said, CMD_DONE, said.out, "");
    release(&said);

    said = run_line(table, "");
    assert_int_equal(said.code, CMD_MISUSED);
    assert_string_equal(said.out, "");
    assert_non_null(strstr(said.chat, "usage: wattmeter COMMAND"));
    release(&said);

    said = run_line(table, "--version");
    check("--version", &said, CMD_DONE, "wattmeter 0.1.0\n", "");
    release(&said);

    check_same("-V", "--version");
    check_same("-h", "--help");
    check_same("help", "--help");
    check_same("help|help", "--help");
    check_same("help|--help", "--help");
    check_same("help|echo", "echo|--help");
    check_same("help|wrap", "wrap|-h");
}

/* Lines of at most 80 columns, and how many. */
static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text; lines++) {
        size_t length = strcspn(text, "\n");
        if (length > 80)
            fail_msg("%.*s", (int)length, text);
        text += length + 1;
    }
    return lines;
}

/* Each verb has a help of its own, with options that the command has. */
static void check_verbs(const struct cmd *cmd)
{
    char line[64], name[32], usage[64];

    for (const struct cmd_verb *verb = cmd->verbs; verb && verb->name; verb++) {
        size_t length;
        snprintf(line, sizeof(line), "%s|%s|--help", cmd->name, verb->name);
        struct said said = run_line(cmd_table, line);
        assert_int_equal(said.code, CMD_DONE);
        count_lines(said.out);
        snprintf(usage, sizeof(usage), "usage: wattmeter %s %s ", cmd->name, verb->name);
        assert_memory_equal(said.out, usage, strlen(usage));
        for (const char *word = verb->options; word && *word; word += length) {
            word += strspn(word, " ");
            length = strcspn(word, " ");
            snprintf(name, sizeof(name), "--%.*s", (int)length, word);
            if (!strstr(said.out, name))
                fail_msg("%s: there is no %s", line, name);
        }
        release(&said);
    }
}

/* The tables of the program itself. */
static void test_tables(void **state)
{
    const struct cmd_option *option;
    struct said said = run_line(cmd_table, "--help");
    int64_t min_ns, max_ns;

    (void)state;
    assert_true(count_lines(said.out) <= 24);
    release(&said);

    for (size_t i = 0; cmd_table[i]; i++) {
        const struct cmd *cmd = cmd_table[i];
        char line[32], letters[64] = "";

        snprintf(line, sizeof(line), "%s|--help", cmd->name);
        said = run_line(cmd_table, line);
        assert_int_equal(said.code, CMD_DONE);
        if (!cmd->run_words) { /* whose help is another tool's */
            count_lines(said.out);
            strncat(letters, "h", 2);
            check_verbs(cmd);
        }
        release(&said);
        assert_ptr_equal(cmd_find(cmd_table, cmd->name), cmd);
        assert_non_null(strstr(cmd->example, cmd->name));

        for (size_t k = 0; (option = cmd_option_at(cmd, k)) != NULL; k++) {
            assert_true(option->placeholder || option->type == CMD_TEXT ||
                        option->type == CMD_TIMES);
            assert_true((option->min == NULL) == (option->max == NULL));
            for (size_t other = 0; other < k; other++)
                assert_string_not_equal(cmd_option_at(cmd, other)->name, option->name);
            if (option->letter) {
                assert_null(strchr(letters, option->letter));
                strncat(letters, &option->letter, 1);
            }
            if (strcmp(option->name, "interval") == 0) {
                assert_true(cmd_parse_duration(option->min, &min_ns));
                assert_true(cmd_parse_duration(option->max, &max_ns));
                assert_int_equal(min_ns, WM_INTERVAL_MIN_NS);
                assert_int_equal(max_ns, WM_INTERVAL_MAX_NS);
            }
        }
    }
}

/* What completion offers for a unit is what the library knows. */
static void test_words_of_units(void **state)
{
    const struct cmd *run = cmd_find(cmd_table, "run");
    const struct cmd_option *option;
    size_t found = 0;

    (void)state;
    for (size_t i = 0; (option = cmd_option_at(run, i)) != NULL; i++) {
        size_t length = strlen(option->name);
        if (length < 5 || strcmp(option->name + length - 5, "-unit") != 0)
            continue;
        char *words = strdup(option->words), *rest = words, *word;
        while ((word = strsep(&rest, " ")) != NULL) {
            struct wm_report_style style = { 0 };
            *(strcmp(option->name, "time-unit") == 0 ? &style.time_unit : &style.ram_unit) =
                word;
            assert_int_equal(wm_report_style_check(&style, NULL), WM_OK);
            found++;
        }
        free(words);
    }
    assert_int_equal(found, 5 + 5 + 4);
}

/* --format offers names that the library has. */
static void test_words_of_formats(void **state)
{
    const struct cmd_option *option;
    size_t found = 0;

    (void)state;
    for (size_t c = 0; cmd_table[c]; c++) {
        for (size_t i = 0; (option = cmd_option_at(cmd_table[c], i)) != NULL; i++) {
            if (strcmp(option->name, "format") != 0 || cmd_table[c]->run_words)
                continue;
            char *words = strdup(option->words), *rest = words, *word;
            while ((word = strsep(&rest, " ")) != NULL) {
                int format = wm_format_find(word);
                assert_true(format >= 0);
                assert_string_equal(wm_format_name((enum wm_format)format), word);
                found++;
            }
            free(words);
        }
    }
    assert_true(found > 15);
    assert_int_equal(wm_format_find("yaml"), WM_ENOENT);
    assert_int_equal(wm_format_find(""), WM_ENOENT);
    assert_null(wm_format_name((enum wm_format)9));
    assert_null(wm_format_name((enum wm_format) - 1));
}

/* The bounds of factors are those of the library. */
static void test_bounds_of_factors(void **state)
{
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {
        { "price", offsetof(struct wm_report_style, price_per_kwh) },
        { "carbon", offsetof(struct wm_report_style, carbon_g_per_kwh) },
        { "pue", offsetof(struct wm_report_style, pue) },
    };
    const struct cmd *run = cmd_find(cmd_table, "run");
    const struct cmd_option *option;
    size_t found = 0;

    (void)state;
    for (size_t i = 0; (option = cmd_option_at(run, i)) != NULL; i++) {
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            struct wm_report_style style = { 0 };
            double *factor = (double *)(void *)((char *)&style + rows[k].offset);
            double most;

            if (strcmp(option->name, rows[k].name) != 0)
                continue;
            assert_true(cmd_parse_number(option->min, factor));
            assert_int_equal(wm_report_style_check(&style, NULL), WM_OK);
            assert_true(cmd_parse_number(option->max, &most));
            *factor = most;
            assert_int_equal(wm_report_style_check(&style, NULL), WM_OK);
            *factor = most * 1.001;
            assert_int_equal(wm_report_style_check(&style, NULL), WM_EINVAL);
            found++;
        }
    }
    assert_int_equal(found, ARRAY_LEN(rows));
}

/* What is wrong is said before anything is done: none of these starts a command. */
static void test_refusals(void **state)
{
    static const struct {
        const char *line, *chat;
        int code;
    } rows[] = {
        { "run|--ram-unit|GB|nothing-to-run", "'GB' is not a unit of memory", CMD_MISUSED },
        { "run|--time-unit|weeks|nothing-to-run", "'weeks' is not a unit of time",
          CMD_MISUSED },
        { "run|--append|nothing-to-run", "--record is missing", CMD_MISUSED },
        { "run|--append|--overwrite|--record|x.csv|nothing-to-run", "exclude",
          CMD_MISUSED },
        { "run|--note|word|nothing-to-run", "there is no KEY= in word", CMD_MISUSED },
        { "run|--note|=word|nothing-to-run", "there is no KEY= in =word", CMD_MISUSED },
        { "run|-o|there|nothing-to-run", "there: exists already", CMD_FAILED },
        { "run|-o|.|nothing-to-run", "is a folder", CMD_FAILED },
        { "run|-o|none/x|nothing-to-run", "none: No such file", CMD_FAILED },
        { "run|-o|there/x|nothing-to-run", "Not a directory", CMD_FAILED },
        { "run|-o|broken|nothing-to-run", "a link to a file that does not exist",
          CMD_FAILED },
        { "run|--record|x.txt|nothing-to-run", "x.txt", CMD_MISUSED },
        { "run|--record|none/x.csv|nothing-to-run", "none", CMD_FAILED },
        { "run|-i|2h|nothing-to-run", "out of range", CMD_MISUSED },
        { "run|--price|-0.3|nothing-to-run", "'-0.3' is out of range", CMD_MISUSED },
        { "run|--price|nan|nothing-to-run", "'nan' is not a number", CMD_MISUSED },
        { "run|--price|inf|nothing-to-run", "'inf' is not a number", CMD_MISUSED },
        { "run|--price|1e300|nothing-to-run", "'1e300' is not a number", CMD_MISUSED },
        { "run|--price|0,30|nothing-to-run", "'0,30' is not a number", CMD_MISUSED },
        { "run|--price|cheap|nothing-to-run", "'cheap' is not a number", CMD_MISUSED },
        { "run|--price|1000001|nothing-to-run", "out of range", CMD_MISUSED },
        { "run|--price=|nothing-to-run", "an empty word is not AMOUNT", CMD_MISUSED },
        { "run|--currency|E R|nothing-to-run", "currency: has a blank", CMD_MISUSED },
        { "run|--currency=|nothing-to-run", "an empty word is not NAME", CMD_MISUSED },
        { "attach|--carbon|-380|1", "'-380' is out of range", CMD_MISUSED },
        { "attach|--carbon|100001|1", "out of range", CMD_MISUSED },
        { "report|--pue|0.9|none", "'0.9' is out of range, which is 1 to 100",
          CMD_MISUSED },
        { "report|--pue|0|none", "'0' is out of range", CMD_MISUSED },
        { "report|--pue|NaN|none", "'NaN' is not a number", CMD_MISUSED },
        { "export|--codecarbon|x.csv|-o|x.csv|none", "exclude each other", CMD_MISUSED },
        { "export|--gpu-tracker|x.csv|-o|x.csv|none", "exclude each other", CMD_MISUSED },
        { "export|--gpu-tracker|x.db|none", "ends in .csv or .sqlite", CMD_MISUSED },
        { "export|--codecarbon|there|there", "is the recording itself", CMD_MISUSED },
        { "export|--codecarbon|x.csv|--carbon|x|none", "'x' is not a number", CMD_MISUSED },
        { "export|--codecarbon|x.csv|--pue|0.1|none", "out of range", CMD_MISUSED },
        { "export|--codecarbon|x.csv|none", "none: ", CMD_FAILED },
        { "export|--codecarbon|x.csv|there", "there: ", CMD_FAILED },
        { "attach|0", "'0' is not the number of a process", CMD_MISUSED },
        { "attach|-1", "there is no option '-1'", CMD_MISUSED },
        { "attach|12x", "'12x' is not", CMD_MISUSED },
        { "attach|4294967297", "'4294967297' is not", CMD_MISUSED },
        { "attach|2147483647", "2147483647", CMD_FAILED },
        { "attach", "nothing to attach", CMD_MISUSED },
        { "report|none", "none: ", CMD_FAILED },
        { "report|there", "there: ", CMD_FAILED },
        { "report|--overwrite|-o|there|there", "--output: there: is what is to be read",
          CMD_MISUSED },
        { "report|-o|there|--meter|there|none", "there: is what is to be read",
          CMD_MISUSED },
        { "analyze|-o|there|--regions|there|none", "there: is what is to be read",
          CMD_MISUSED },
        { "compare|-o|there|none|x=there", "there: is what is to be read", CMD_MISUSED },
        { "report|--gpu-ram-unit|x|none", "'x' is not a unit", CMD_MISUSED },
        { "info|--visible|0", "--visible and '0' exclude each other", CMD_MISUSED },
        { "info|--watch|50ms", "out of range", CMD_MISUSED },
        { "info|--watch|often", "'often' is not a duration", CMD_MISUSED },
        { "info|-o|there", "there: exists already", CMD_FAILED },
        { "info|--ram-unit|bytes", "there is no option '--ram-unit'", CMD_MISUSED },
        { "export|none", "--output FILE is missing", CMD_MISUSED },
        { "export|--append|--overwrite|-o|x.csv|none", "exclude", CMD_MISUSED },
        { "export|-o|x.csv|none", "none: ", CMD_FAILED },
    };
    char folder[256];

    assert_non_null(getcwd(folder, sizeof(folder)));
    assert_int_equal(chdir(*state), 0);
    test_write_file(".", "there", "not a recording");
    assert_int_equal(symlink("gone", "broken"), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said said = run_line(cmd_table, rows[i].line);
        check(rows[i].line, &said, rows[i].code, "", rows[i].chat);
        release(&said);
        assert_int_equal(access("x.csv", F_OK), -1);
    }
    assert_int_equal(chdir(folder), 0);
}

static void test_full_disk(void **state)
{
    FILE *full = fopen("/dev/full", "w");
    char *chat, *words[] = { (char[]) { "wattmeter" }, (char[]) { "echo" },
                             (char[]) { "x" }, NULL };
    size_t size;

    (void)state;
    assert_non_null(full);
    const struct cmd_streams io = { .out = full, .chat = open_memstream(&chat, &size) };
    assert_int_equal(cmd_main(table, 3, words, &io), CMD_FAILED);
    fclose(io.chat);
    fclose(full);
    assert_string_equal(chat, "wattmeter: could not write the output\n");
    free(chat);
}

/* Whatever allocation fails, the command fails, or it needed none. */
static void test_out_of_memory(void **state)
{
    struct said said;
    long needed;

    test_write_file(*state, "wattmeter/config", "text = file\n");
    test_fail_allocation(-1);
    said = run_line(table, "echo|a");
    needed = test_fail_allocation(-1);
    release(&said);

    for (long nth = 1; nth < needed; nth++) { /* the first is the test's own */
        test_fail_allocation(nth);
        said = run_line(table, "echo|a");
        test_fail_allocation(-1);
        assert_true(said.code != CMD_DONE || strstr(said.out, "operand:a"));
        if (said.code != CMD_DONE)
            assert_non_null(strstr(said.chat, "out of memory"));
        release(&said);
    }
}

static int make_home(void **state)
{
    if (test_make_dir(state) != 0)
        return -1;
    return setenv("XDG_CONFIG_HOME", *state, 1);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_home, test_remove_dir)

UNIT(cmd)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_words),
        IN_FOLDER(test_wrong_words),
        cmocka_unit_test(test_durations),
        IN_FOLDER(test_defaults),
        IN_FOLDER(test_wrong_defaults),
        IN_FOLDER(test_where_the_file_is),
        IN_FOLDER(test_large_and_binary_files),
        IN_FOLDER(test_help),
        IN_FOLDER(test_tables),
        cmocka_unit_test(test_words_of_units),
        cmocka_unit_test(test_words_of_formats),
        cmocka_unit_test(test_bounds_of_factors),
        IN_FOLDER(test_refusals),
        IN_FOLDER(test_full_disk),
        IN_FOLDER(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
