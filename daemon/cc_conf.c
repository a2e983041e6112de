/* SPDX-License-Identifier: MIT */
#include "daemon/cc_conf.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "common/cc_sys.h"

#define WHERE_SIZE 512u
#define BLANKS     " \t\r\n\v\f"

struct conf {
	FILE *file;
	const char *path;
	cc_conf_setting_fn *fn;
	void *arg;
	unsigned line;
	bool has_key; /* an indented line continues the value of this key */
	bool wrong;
};

static const char *say_where(const struct conf *c, char where[WHERE_SIZE])
{
	snprintf(where, WHERE_SIZE, "%s, line %u", c->path, c->line);
	return where;
}

/* Writes the end of a line. */
static void end_line(char *at)
{
	at[0] = '\n';
	at[1] = '\0';
}

/* Cuts off a comment that begins with '#'. After a value, the library recognizes only comments that
 * begin with ';'. */
static void cut_comment(char *text)
{
	for (char *c = text; *c; c++) {
		if (*c != '#' || c == text || !strchr(BLANKS, c[-1]))
			continue;
		end_line(c);
		return;
	}
}

/* Returns the mistake in the line, or NULL. */
static const char *judge(struct conf *c, const char *text)
{
	static const char bom[] = "\xEF\xBB\xBF";
	bool indented;

	if (c->line == 1 && strncmp(text, bom, strlen(bom)) == 0)
		text += strlen(bom);
	indented = strchr(BLANKS, *text) != NULL;
	text += strspn(text, BLANKS);
	if (*text == '\0' || *text == ';' || *text == '#' || (indented && c->has_key))
		return NULL;
	c->has_key = *text != '[';
	if (*text == '[')
		return strchr(text, ']') ? NULL : "\"]\" is missing after the section's name";
	return strpbrk(text, "=:") ? NULL : "expected [section] or key = value";
}

static void drop_rest(FILE *file)
{
	int c;

	do
		c = getc(file);
	while (c != '\n' && c != EOF);
}

/* Reads a line, like fgets, and logs the mistake in it. The library gets an empty line in place of
 * a wrong one, because some builds of the library stop at a wrong line. */
static char *read_line(char *text, int size, void *stream)
{
	struct conf *c = stream;
	char where[WHERE_SIZE];
	const char *why;

	if (!fgets(text, size, c->file))
		return NULL;
	c->line++;
	if (!strchr(text, '\n') && !feof(c->file)) {
		drop_rest(c->file);
		cc_log(CC_LOG_ERR, "%s: the line is longer than the limit of %d bytes",
			say_where(c, where), size - 2);
		c->wrong = true;
		end_line(text);
		return text;
	}
	cut_comment(text);
	why = judge(c, text);
	if (why) {
		cc_log(CC_LOG_ERR, "%s: %s", say_where(c, where), why);
		c->wrong = true;
		end_line(text);
	}
	return text;
}

static int take(void *arg, const char *section, const char *key, const char *value)
{
	struct conf *c = arg;
	char where[WHERE_SIZE];

	if (!c->fn(c->arg, say_where(c, where), section, key, value))
		c->wrong = true;
	return 1;
}

static int fail(const char *path, const char *why)
{
	cc_log(CC_LOG_ERR, "cannot read %s: %s", path, why);
	return EX_NOINPUT;
}

int cc_conf_read(const char *path, cc_conf_setting_fn *fn, void *arg)
{
	struct conf c = {.path = path, .fn = fn, .arg = arg};
	int r, error;

	if (cc_is_folder(path))
		return fail(path, "it is a folder");
	c.file = fopen(path, "re");
	if (!c.file)
		return fail(path, strerror(errno));
	errno = 0;
	r = ini_parse_stream(read_line, &c, take, &c);
	error = ferror(c.file) ? errno : 0;
	fclose(c.file);
	if (error || r < 0)
		return fail(path, strerror(error ? error : ENOMEM));
	if (r > 0 && !c.wrong) {
		cc_log(CC_LOG_ERR, "%s, line %d: expected [section] or key = value", path, r);
		return EX_CONFIG;
	}
	return c.wrong ? EX_CONFIG : EX_OK;
}

/* ---- options ---- */

void cc_conf_say(void *unused, int level, const char *sentence)
{
	(void)unused;
	cc_log(level, "%s", sentence);
}

bool cc_conf_key(struct cc_options_run *r, const char *where, const char *section, const char *key,
	const char *value, const char *sections)
{
	if (strcmp(section, r->options->section) == 0)
		return cc_options_key(r, key, value, where) == 0;
	cc_log(CC_LOG_ERR, "%s: %s stands in %s%s%s; %s", where, key,
		*section ? "section [" : "no section", section, *section ? "]" : "", sections);
	return false;
}

int cc_conf_options(struct cc_options_run *r, int argc, char **argv, char *const *config,
	cc_conf_setting_fn *fn, int *exit_code)
{
	enum cc_options_todo todo;
	int first;

	r->say = cc_conf_say;
	*exit_code = EX_OK;
	if (cc_options_command_line(r, argc, argv, &todo, &first) < 0) {
		fprintf(stderr, "Try '%s --help'.\n", r->options->program);
		*exit_code = EX_USAGE;
		return CC_ERR_INVAL;
	}
	if (todo != CC_OPTIONS_GO_ON) {
		*exit_code = cc_options_print(r->options, todo, stdout);
		return CC_ERR_EOF;
	}
	cc_options_file(r);
	if (*config)
		*exit_code = cc_conf_read(*config, fn, r);
	if (*exit_code == EX_OK && cc_options_environment(r) < 0)
		*exit_code = EX_CONFIG;
	if (*exit_code == EX_OK && cc_options_command_line(r, argc, argv, &todo, &first) < 0)
		*exit_code = EX_OSERR; /* the first pass accepted the same command line, so this is
					  not a usage error */
	return *exit_code == EX_OK ? 0 : CC_ERR_INVAL;
}
