/* SPDX-License-Identifier: MIT */
#include "pccl-bench/fields.h"

#include <json-c/json.h>

#include "common/cc_err.h"

bool bch_add(struct json_object *o, const char *key, struct json_object *v)
{
	if (v && json_object_object_add(o, key, v) == 0)
		return true;
	json_object_put(v);
	return false;
}

bool bch_add_number(struct json_object *o, const char *key, uint64_t v)
{
	return bch_add(o, key, json_object_new_uint64(v));
}

bool bch_add_text(struct json_object *o, const char *key, const char *v)
{
	return bch_add(o, key, json_object_new_string(v));
}

bool bch_add_flag(struct json_object *o, const char *key, bool v)
{
	return bch_add(o, key, json_object_new_boolean(v));
}

bool bch_add_known(struct json_object *o, const char *key, bool known, uint64_t v)
{
	return known ? bch_add_number(o, key, v) : json_object_object_add(o, key, NULL) == 0;
}

bool bch_add_rate(struct json_object *o, const char *key, bool known, double v)
{
	return known ? bch_add(o, key, json_object_new_double(v))
		     : json_object_object_add(o, key, NULL) == 0;
}

int bch_print_object(FILE *f, struct json_object *o, bool ok)
{
	const char *text = NULL;

	if (ok)
		text = json_object_to_json_string_ext(
			o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(f, "%s\n", text);
	json_object_put(o);
	return text ? 0 : CC_ERR_NOMEM;
}
