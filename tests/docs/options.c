/* SPDX-License-Identifier: MIT
 *
 * Prints the tables of options of all programs for test_options.py, as one JSON array of programs.
 */
#include <json-c/json.h>
#include <stdio.h>

#include "ccoip-masterd/options.h"
#include "pccl-bench/options.h"
#include "pcclagentd/options.h"
#include "pcclctl/options.h"

static void text(struct json_object *to, const char *key, const char *value)
{
	json_object_object_add(to, key, value ? json_object_new_string(value) : NULL);
}

static void flag(struct json_object *to, const char *key, bool value)
{
	json_object_object_add(to, key, json_object_new_boolean(value));
}

static struct json_object *row(const struct cc_opt *o)
{
	struct json_object *r = json_object_new_object(), *words = json_object_new_array();
	char letter[] = {o->letter, '\0'}, usual[CC_OPTIONS_VALUE], wanted[CC_OPTIONS_SENTENCE];

	text(r, "name", o->name);
	text(r, "letter", letter);
	text(r, "arg", o->arg);
	text(r, "was", o->was);
	text(r, "env", o->env);
	text(r, "usual", cc_opt_usual(o, usual));
	flag(r, "in_words", o->usual != NULL);
	text(r, "wanted", cc_opt_wanted(o, wanted));
	flag(r, "key", o->key);
	flag(r, "list", o->list);
	flag(r, "path", o->kind == CC_OPT_PATH);
	for (unsigned i = 0; o->words && o->words[i]; i++)
		json_object_array_add(words, json_object_new_string(o->words[i]));
	json_object_object_add(r, "words", words);
	return r;
}

static struct json_object *table(const struct cc_options *o)
{
	struct json_object *t = json_object_new_object(), *rows = json_object_new_array();

	text(t, "program", o->program);
	text(t, "section", o->section);
	for (unsigned i = 0; i < o->n; i++)
		json_object_array_add(rows, row(&o->opt[i]));
	json_object_object_add(t, "options", rows);
	return t;
}

int main(void)
{
	struct json_object *all = json_object_new_array();

	json_object_array_add(all, table(&agentd_options));
	json_object_array_add(all, table(&masterd_options));
	json_object_array_add(all, table(&ctl_options));
	json_object_array_add(all, table(&bch_options_table));
	puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	json_object_put(all);
	return fflush(stdout) == 0 ? 0 : 1;
}
