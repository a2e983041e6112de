/* SPDX-License-Identifier: MIT */
#include "common/cc_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"

/* The result of getopt_long for row i of the table. */
#define ROW(i) (512 + (int)(i))

enum { VALUE_HELP = 256, VALUE_VERSION };

static const char units[] = "KMGT";

/* ---- values ---- */

bool cc_opt_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || v < least || v > most)
		return false;
	*ret = v;
	return true;
}

bool cc_opt_bytes(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	char digits[24];
	uint64_t v;

	if (len >= sizeof digits)
		return false;
	memcpy(digits, text, len + 1);
	if (unit)
		digits[len - 1] = '\0';
	if (!cc_opt_number(digits, 0, most >> shift, &v) || v << shift < least)
		return false;
	*ret = v << shift;
	return true;
}

static bool read_seconds(const struct cc_opt *o, const char *text, uint64_t *ret)
{
	char *end;
	double ms = strtod(text, &end) * 1000;

	/* Refuses a sign, an exponent, "inf" and "0x1". */
	if (text[strspn(text, "0123456789.")] || *end || end == text || ms < (double)o->n.least ||
		ms > (double)o->n.most)
		return false;
	*ret = (uint64_t)(ms + 0.5);
	return true;
}

static bool read_word(const struct cc_opt *o, const char *text, uint64_t *ret)
{
	for (unsigned i = 0; o->words[i]; i++) {
		if (strcmp(o->words[i], text) != 0)
			continue;
		*ret = o->n.least + i;
		return true;
	}
	return false;
}

static bool read_number(const struct cc_opt *o, const char *text, uint64_t *ret)
{
	switch (o->kind) {
	case CC_OPT_FLAG:
		*ret = 1;
		return true;
	case CC_OPT_FD:
		return cc_opt_number(text, 0, INT32_MAX, ret);
	case CC_OPT_SECONDS:
		return read_seconds(o, text, ret);
	case CC_OPT_BYTES:
		return cc_opt_bytes(text, o->n.least, o->n.most, ret);
	case CC_OPT_WORD:
		return read_word(o, text, ret);
	default:
		return cc_opt_number(text, o->n.least, o->n.most, ret);
	}
}

static bool is_number(const struct cc_opt *o)
{
	return o->kind != CC_OPT_NAME && o->kind != CC_OPT_PATH && o->kind != CC_OPT_SET;
}

static void store_number(const struct cc_opt *o, void *base, uint64_t v)
{
	void *at = (char *)base + o->off;

	switch (o->size) {
	case sizeof(uint8_t):
		*(uint8_t *)at = (uint8_t)v;
		return;
	case sizeof(uint16_t):
		*(uint16_t *)at = (uint16_t)v;
		return;
	case sizeof(uint32_t):
		*(uint32_t *)at = (uint32_t)v;
		return;
	default:
		*(uint64_t *)at = v;
	}
}

static bool store_path(char **at, const char *value)
{
	char *copy;

	if (!*value)
		return false;
	copy = strdup(value);
	if (!copy)
		cc_limit_end("options");
	free(*at);
	*at = copy;
	return true;
}

static bool store(const struct cc_opt *o, void *base, const char *value, struct cc_opt_refusal *ret)
{
	char *at = (char *)base + o->off;
	uint64_t v;

	if (o->kind == CC_OPT_SET)
		return o->set(base, o, value, ret);
	if (o->kind == CC_OPT_PATH)
		return store_path((char **)(void *)at, value);
	if (o->kind == CC_OPT_NAME) {
		if (!*value || strlen(value) >= o->size)
			return false;
		memcpy(at, value, strlen(value) + 1);
		return true;
	}
	if (!read_number(o, value, &v))
		return false;
	store_number(o, base, v);
	return true;
}

void cc_options_defaults(const struct cc_options *o, void *base)
{
	for (unsigned i = 0; i < o->n; i++) {
		const struct cc_opt *opt = &o->opt[i];

		if (opt->kind == CC_OPT_FD)
			store_number(opt, base, UINT64_MAX);
		else if (is_number(opt))
			store_number(opt, base, opt->unset ? 0 : opt->n.usual);
	}
}

void cc_options_clear(const struct cc_options *o, void *base)
{
	for (unsigned i = 0; i < o->n; i++) {
		char **at = (char **)(void *)((char *)base + o->opt[i].off);

		if (o->opt[i].kind != CC_OPT_PATH)
			continue;
		free(*at);
		*at = NULL;
	}
}

/* ---- values in words ---- */

static const char *number_text(const struct cc_opt *o, uint64_t v, char buf[CC_OPTIONS_VALUE])
{
	unsigned unit = 0;
	char letter[2] = "";

	if (o->kind == CC_OPT_SECONDS) {
		snprintf(buf, CC_OPTIONS_VALUE, "%.10g", (double)v / 1000);
		return buf;
	}
	if (o->kind == CC_OPT_BYTES)
		for (; unit < sizeof units - 1 && v && v % 1024 == 0; unit++)
			v /= 1024;
	if (unit > 0)
		letter[0] = units[unit - 1];
	snprintf(buf, CC_OPTIONS_VALUE, "%" PRIu64 "%s", v, letter);
	return buf;
}

const char *cc_opt_usual(const struct cc_opt *o, char buf[CC_OPTIONS_VALUE])
{
	if (o->usual)
		return o->usual;
	if (o->kind == CC_OPT_WORD)
		return o->words[o->n.usual - o->n.least];
	if (o->kind == CC_OPT_FLAG || o->kind == CC_OPT_FD || !is_number(o))
		return "";
	return number_text(o, o->n.usual, buf);
}

/* Returns the words as "a, b or c". */
static const char *words_text(const char *const *words, char buf[CC_OPTIONS_SENTENCE])
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned i = 0; words[i] && len < CC_OPTIONS_SENTENCE; i++) {
		const char *between = i == 0 ? "" : words[i + 1] ? ", " : " or ";

		len += (size_t)snprintf(
			buf + len, CC_OPTIONS_SENTENCE - len, "%s%s", between, words[i]);
	}
	return buf;
}

const char *cc_opt_wanted(const struct cc_opt *o, char buf[CC_OPTIONS_SENTENCE])
{
	static const char *const what[] = {
		[CC_OPT_COUNT] = "a number",
		[CC_OPT_MS] = "a number of milliseconds",
		[CC_OPT_SECONDS] = "a number of seconds",
		[CC_OPT_PORT] = "a port",
		[CC_OPT_BYTES] = "a number of bytes",
	};
	char least[CC_OPTIONS_VALUE], most[CC_OPTIONS_VALUE];

	switch (o->kind) {
	case CC_OPT_FLAG:
		return "";
	case CC_OPT_SET:
		return o->wanted;
	case CC_OPT_PATH:
		return "a path";
	case CC_OPT_FD:
		return "the number of a descriptor";
	case CC_OPT_WORD:
		return words_text(o->words, buf);
	case CC_OPT_NAME:
		snprintf(buf, CC_OPTIONS_SENTENCE, "a name of 1 to %zu bytes", o->size - 1);
		return buf;
	default:
		break;
	}
	if (o->kind == CC_OPT_BYTES && o->n.most == CC_OPTIONS_BYTES)
		return "a number of bytes above 0, such as 4096, 512M or 3G";
	snprintf(buf, CC_OPTIONS_SENTENCE, "%s from %s to %s%s", what[o->kind],
		number_text(o, o->n.least, least), number_text(o, o->n.most, most),
		o->kind == CC_OPT_BYTES ? ", with K, M, G or T" : "");
	return buf;
}

/* ---- sources ---- */

__attribute__((format(printf, 3, 4))) static int say(
	const struct cc_options_run *r, int level, const char *fmt, ...)
{
	char sentence[CC_OPTIONS_SENTENCE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof sentence, fmt, ap);
	va_end(ap);
	r->say(r->arg, level, sentence);
	return CC_ERR_INVAL;
}

/* Stores the value of option i. `called` is the name of the option in this source. */
static int apply(struct cc_options_run *r, unsigned i, const char *value, const char *called)
{
	const struct cc_opt *o = &r->options->opt[i];
	struct cc_opt_refusal no = {.why = NULL};
	char wanted[CC_OPTIONS_SENTENCE];

	if (o->list && r->from[i] != r->source)
		(void)o->set(r->base, o, NULL, &no);
	r->from[i] = r->source;
	if (store(o, r->base, value, &no))
		return 0;
	if (!no.part[0])
		snprintf(no.part, sizeof no.part, "%s", value);
	if (no.why)
		return say(r, CC_LOG_ERR, "%s is \"%s\": %s", called, no.part, no.why);
	return say(r, CC_LOG_ERR, "%s is \"%s\", it must be %s", called, no.part,
		cc_opt_wanted(o, wanted));
}

static void warn(struct cc_options_run *r, unsigned i, const char *called, const char *now)
{
	if (!r->warned[i])
		say(r, CC_LOG_WARNING, "%s is now called %s; the old name still works", called,
			now);
	r->warned[i] = true;
}

/* ---- the command line ---- */

struct long_options {
	struct option v[2 * CC_OPTIONS_MAX + 3];
	bool old[2 * CC_OPTIONS_MAX + 3]; /* this is the old name of the option */
	char letters[2 * CC_OPTIONS_MAX + 2];
};

/* Fills the arguments of getopt_long. Old names come last. If a word abbreviates both names of an
 * option, it still means only one option. */
static void collect(const struct cc_options *o, struct long_options *ret)
{
	unsigned n = 0, letters = 0;

	*ret = (struct long_options){.letters = ":"};
	for (unsigned i = 0; i < o->n; i++) {
		int has_arg = o->opt[i].kind == CC_OPT_FLAG ? no_argument : required_argument;

		ret->v[n++] = (struct option){o->opt[i].name, has_arg, NULL, ROW(i)};
		if (!o->opt[i].letter)
			continue;
		ret->letters[++letters] = o->opt[i].letter;
		if (has_arg == required_argument)
			ret->letters[++letters] = ':';
	}
	ret->v[n++] = (struct option){"help", no_argument, NULL, VALUE_HELP};
	ret->v[n++] = (struct option){"version", no_argument, NULL, VALUE_VERSION};
	for (unsigned i = 0; i < o->n; i++) {
		int has_arg = o->opt[i].kind == CC_OPT_FLAG ? no_argument : required_argument;

		if (!o->opt[i].was)
			continue;
		ret->old[n] = true;
		ret->v[n++] = (struct option){o->opt[i].was, has_arg, NULL, ROW(i)};
	}
}

static int refuse_word(const struct cc_options_run *r, int opt, const char *word)
{
	unsigned similar = 0;

	if (opt == ':')
		return say(r, CC_LOG_ERR, "%.64s needs a value", word);
	if (optopt >= VALUE_HELP)
		return say(r, CC_LOG_ERR, "%.*s takes no value", (int)strcspn(word, "="), word);
	if (optopt)
		return say(r, CC_LOG_ERR, "there is no option -%c", optopt);
	for (unsigned i = 0; i < r->options->n; i++)
		similar += strncmp(r->options->opt[i].name, word + 2, strcspn(word + 2, "=")) == 0;
	if (similar)
		return say(r, CC_LOG_ERR, "%.64s is short for several options", word);
	return say(r, CC_LOG_ERR, "there is no option %.64s", word);
}

static unsigned row_of(const struct cc_options *o, int opt)
{
	unsigned i = 0;

	if (opt >= ROW(0))
		return (unsigned)(opt - ROW(0));
	while (i < o->n && o->opt[i].letter != opt)
		i++;
	return i;
}

int cc_options_command_line(struct cc_options_run *r, int argc, char **argv,
	enum cc_options_todo *ret_todo, int *ret_first)
{
	const struct cc_options *o = r->options;
	struct long_options known;
	char called[64], now[64];
	int opt, index = -1;
	unsigned i;

	collect(o, &known);
	r->source++;
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, known.letters, known.v, &index)) != -1) {
		if (opt == VALUE_HELP || opt == VALUE_VERSION) {
			*ret_todo = opt == VALUE_HELP ? CC_OPTIONS_HELP : CC_OPTIONS_VERSION;
			return 0;
		}
		if (opt == '?' || opt == ':')
			return refuse_word(r, opt, argv[optind - 1]);
		i = row_of(o, opt);
		snprintf(called, sizeof called, "--%s", o->opt[i].name);
		if (index >= 0 && known.old[index]) {
			memcpy(now, called, sizeof now);
			snprintf(called, sizeof called, "--%s", o->opt[i].was);
			warn(r, i, called, now);
		}
		r->commanded[i] = true;
		if (apply(r, i, optarg, called) < 0)
			return CC_ERR_INVAL;
		index = -1;
	}
	if (optind < argc && !o->words)
		return say(r, CC_LOG_ERR, "unexpected argument \"%.64s\"", argv[optind]);
	*ret_todo = CC_OPTIONS_GO_ON;
	*ret_first = optind;
	return 0;
}

bool cc_options_given(const struct cc_options_run *r, const char *name)
{
	for (unsigned i = 0; i < r->options->n; i++)
		if (strcmp(r->options->opt[i].name, name) == 0)
			return r->from[i] != 0;
	return false;
}

/* ---- the file and the environment ---- */

/* Writes the key that an option has in the file. */
static void key_of(const char *name, char ret[64])
{
	snprintf(ret, 64, "%s", name);
	for (char *c = ret; *c; c++)
		*c = *c == '-' ? '_' : *c;
}

static bool is_key(const char *key, const char *name)
{
	char own[64];

	if (!name)
		return false;
	key_of(name, own);
	return strcmp(key, own) == 0;
}

void cc_options_file(struct cc_options_run *r)
{
	r->source++;
}

int cc_options_key(struct cc_options_run *r, const char *key, const char *value, const char *where)
{
	char called[CC_OPTIONS_SENTENCE], now[64];

	snprintf(called, sizeof called, "%s: %s", where, key);
	for (unsigned i = 0; i < r->options->n; i++) {
		const struct cc_opt *o = &r->options->opt[i];
		bool old = is_key(key, o->was);

		if (!o->key || (!old && !is_key(key, o->name)))
			continue;
		key_of(o->name, now);
		if (old)
			warn(r, i, called, now);
		return apply(r, i, value, called);
	}
	return say(r, CC_LOG_ERR, "%s: there is no setting \"%s\"", where, key);
}

int cc_options_environment(struct cc_options_run *r)
{
	r->source++;
	for (unsigned i = 0; i < r->options->n; i++) {
		const char *env = r->options->opt[i].env, *value = env ? getenv(env) : NULL;

		if (!value || !*value || r->commanded[i])
			continue;
		if (apply(r, i, value, env) < 0)
			return CC_ERR_INVAL;
	}
	return 0;
}

/* ---- --help ---- */

/* Columns of an option and its argument. If they are longer, they get their own line. */
#define LEFT_MAX 30
#define LINE_MAX 80

static int left_text(const struct cc_opt *o, char buf[96])
{
	char letter[] = "-x, ";

	letter[1] = o->letter;
	return snprintf(buf, 96, "  %s--%s%s%s", o->letter ? letter : "    ", o->name,
		o->arg ? " " : "", o->arg ? o->arg : "");
}

/* Returns the length of the first word. A default in brackets counts as one word if it fits into a
 * line. */
static int word_length(const char *text, int width)
{
	size_t all = strlen(text);

	return (int)(*text == '[' && all <= (size_t)width ? all : strcspn(text, " "));
}

/* Prints text in several lines, and `left` before the first line. */
static void print_item(FILE *f, const char *left, const char *text, int column)
{
	int at = fprintf(f, "%s", left);

	if (at + 2 > column) {
		fputc('\n', f);
		at = 0;
	}
	at += fprintf(f, "%*s", column - at, "");
	for (bool first = true; *text; first = false) {
		int len = word_length(text, LINE_MAX - 1 - column);

		if (!first && at + 1 + len > LINE_MAX - 1)
			at = fprintf(f, "\n%*s", column, "") - 1;
		else if (!first)
			at += fprintf(f, " ");
		at += fprintf(f, "%.*s", len, text);
		text += len + (text[len] == ' ');
	}
	fputc('\n', f);
}

static void print_options(const struct cc_options *o, bool keys, int column, FILE *f)
{
	char left[96], text[2 * CC_OPTIONS_SENTENCE], usual[CC_OPTIONS_VALUE];

	for (unsigned i = 0; i < o->n; i++) {
		const struct cc_opt *opt = &o->opt[i];
		const char *shown = cc_opt_usual(opt, usual);

		if (opt->key != keys)
			continue;
		left_text(opt, left);
		snprintf(text, sizeof text, "%s%s%s%s", opt->help, *shown ? " [" : "", shown,
			*shown ? "]" : "");
		print_item(f, left, text, column);
	}
}

static void print_help(const struct cc_options *o, FILE *f)
{
	int column = 0;
	char left[96];

	for (unsigned i = 0; i < o->n; i++) {
		int len = left_text(&o->opt[i], left) + 2;

		if (len <= LEFT_MAX + 2 && len > column)
			column = len;
	}
	fprintf(f, "%s\n", o->about);
	print_options(o, false, column, f);
	fputs("      --help, --version\n", f);
	if (!o->section)
		return;
	fprintf(f, "\nSettings, also in section [%s] of the file, with _ instead of -:\n",
		o->section);
	print_options(o, true, column, f);
}

int cc_options_print(const struct cc_options *o, enum cc_options_todo todo, FILE *f)
{
	if (todo == CC_OPTIONS_HELP)
		print_help(o, f);
	else
		fprintf(f, "%s " PACKAGE_VERSION "\n", o->program);
	return fflush(f) != 0 || ferror(f) ? EX_IOERR : EX_OK;
}
