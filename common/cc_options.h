/* SPDX-License-Identifier: MIT
 *
 * The options of a program. One table defines the command line, --help, the keys of the
 * configuration file, the environment variables, and the checks of all values. tests/docs compares
 * the table with the manual page and the completion. The code uses getopt_long for the command
 * line, so it is not reentrant.
 */
#ifndef CC_OPTIONS_H
#define CC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CC_OPTIONS_MAX      64u  /* rows of a table */
#define CC_OPTIONS_SENTENCE 512u /* bytes of an error message */
#define CC_OPTIONS_VALUE    128u /* bytes of a value in an error message */
#define CC_OPTIONS_BYTES    (UINT64_MAX >> 1)

/* The kind of a value, and the type of its field. A number can be stored in any unsigned field or
 * bool. */
enum cc_opt_kind {
	CC_OPT_FLAG,    /* takes no value; bool */
	CC_OPT_COUNT,   /* number */
	CC_OPT_MS,      /* number of milliseconds */
	CC_OPT_SECONDS, /* number, given in seconds and stored in milliseconds */
	CC_OPT_PORT,    /* number */
	CC_OPT_FD,      /* int; -1 until it is given */
	CC_OPT_BYTES,   /* number, with K, M, G or T */
	CC_OPT_WORD, /* number: the first word means n.least, the second n.least + 1, and so on */
	CC_OPT_NAME, /* char[] that contains the name */
	CC_OPT_PATH, /* char *, which cc_options_clear frees */
	CC_OPT_SET,  /* the function set() stores the value */
};

struct cc_opt;

/* The reason of a refusal. */
struct cc_opt_refusal {
	char part[CC_OPTIONS_VALUE]; /* the wrong part of the value; "": the whole value */
	const char *why;             /* NULL: the value is not what the option requires */
};

/* Stores the value in the struct at base. If value is NULL, removes all values of a list. */
typedef bool cc_opt_set_fn(
	void *base, const struct cc_opt *opt, const char *value, struct cc_opt_refusal *ret);

struct cc_opt {
	const char *name; /* "p2p-port" for --p2p-port and, in the file, p2p_port */
	const char *arg;  /* the name of its value in --help; NULL with CC_OPT_FLAG */
	const char *help;
	enum cc_opt_kind kind;
	size_t off, size; /* offset and size of its field: CC_OPT_AT */
	struct {
		uint64_t least, most, usual; /* usual: the default */
	} n;                                 /* numbers */
	bool unset; /* 0 is stored until the option is given. The program replaces 0 by n.usual, or
		       by more if other values require it */
	bool key;   /* the option is also a key of the configuration file */
	bool list;  /* several values; those of a later source replace those of an earlier source */
	char letter;       /* 'b' if -b works, too; 0: no letter */
	const char *was;   /* its old name, which still works, with one warning; or NULL */
	const char *env;   /* its environment variable, or NULL */
	const char *usual; /* the default in words. NULL: the default of a number is n.usual, other
			      kinds have no default */
	const char *const *words; /* CC_OPT_WORD; ends with NULL */
	const char *wanted;       /* CC_OPT_SET: a text that says what the value must be */
	cc_opt_set_fn *set;       /* CC_OPT_SET */
};

#define CC_OPT_AT(type, field) .off = offsetof(type, field), .size = sizeof(((type *)0)->field)

struct cc_options {
	const char *program;
	const char *about;   /* text of --help before the options */
	const char *section; /* section of the file, or NULL if there is no file */
	bool words;          /* the command line may contain words that are not options */
	const struct cc_opt *opt;
	unsigned n;
};

/* The state while options are read. The sources come in this order: the command line, the file, the
 * environment, and the command line again, which overrides the others. */
struct cc_options_run {
	const struct cc_options *options;
	void *base;
	/* level: CC_LOG_ERR or CC_LOG_WARNING. */
	void (*say)(void *arg, int level, const char *sentence);
	void *arg;
	unsigned source;                /* number of the source that is being read */
	unsigned from[CC_OPTIONS_MAX];  /* the last source of each option; 0: no source */
	bool commanded[CC_OPTIONS_MAX]; /* the command line contains the option */
	bool warned[CC_OPTIONS_MAX];
};

/* Stores the defaults of numbers. Does not change anything else in base. */
void cc_options_defaults(const struct cc_options *o, void *base);

enum cc_options_todo { CC_OPTIONS_GO_ON, CC_OPTIONS_HELP, CC_OPTIONS_VERSION };

/* Reads the command line, up to --help or --version. Returns 0, and in *ret_first the index of the
 * first word that is not an option. Returns CC_ERR_INVAL after an error message. */
int cc_options_command_line(struct cc_options_run *r, int argc, char **argv,
	enum cc_options_todo *ret_todo, int *ret_first);
/* Begins the file. Call this once before the calls of cc_options_key. */
void cc_options_file(struct cc_options_run *r);
/* Reads one key of the file. `where` is "FILE, line N", for error messages. Returns 0 or
 * CC_ERR_INVAL. */
int cc_options_key(struct cc_options_run *r, const char *key, const char *value, const char *where);
/* Reads the environment variables, except those of options that are on the command line. Returns 0
 * or CC_ERR_INVAL. */
int cc_options_environment(struct cc_options_run *r);
bool cc_options_given(const struct cc_options_run *r, const char *name);

/* Prints the text of --help or --version, depending on todo. Returns 0 or an exit status. */
int cc_options_print(const struct cc_options *o, enum cc_options_todo todo, FILE *f);
/* Frees all paths in base. */
void cc_options_clear(const struct cc_options *o, void *base);

/* Returns the default as --help shows it, or "". */
const char *cc_opt_usual(const struct cc_opt *o, char buf[CC_OPTIONS_VALUE]);
/* Returns a text that says what a value must be, such as "a port from 0 to 65535". */
const char *cc_opt_wanted(const struct cc_opt *o, char buf[CC_OPTIONS_SENTENCE]);

/* Parses a decimal number. Nothing else may be in the text. */
bool cc_opt_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret);
/* Parses a decimal number that K, M, G or T may follow. These are powers of 1024. */
bool cc_opt_bytes(const char *text, uint64_t least, uint64_t most, uint64_t *ret);

#endif
