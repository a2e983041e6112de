/* SPDX-License-Identifier: MIT
 *
 * Checks and sorts the tensors that the application gives to a synchronization.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpccl-shim/state.h"
#include "proto/wire_dtype.h"
#include "proto/wire_sync.h"
#include "proto/wire_text.h"

#define NAME_SHOWN 64u /* the number of bytes of a name that a sentence shows */

/* Copies a name in printable form, shortened, for a sentence. */
static const char *show(const char *name, char buf[NAME_SHOWN + 4])
{
	size_t len = strnlen(name, NAME_SHOWN + 1);

	wire_text_clean(buf, name, len < NAME_SHOWN ? len : NAME_SHOWN);
	if (len > NAME_SHOWN)
		memcpy(buf + NAME_SHOWN, "...", 4);
	return buf;
}

/* Refuses the tensor with index i. The sentence begins with its index and name. */
__attribute__((format(printf, 4, 5))) static pcclResult_t refuse(
	pcclResult_t code, size_t i, const char *name, const char *fmt, ...)
{
	char why[PCCL_TEXT_MAX], shown[NAME_SHOWN + 4];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	if (!name || !name[0])
		return pccl_fail(code, "infos[%zu]: %s", i, why);
	return pccl_fail(code, "infos[%zu] (\"%s\"): %s", i, show(name, shown), why);
}

static pcclResult_t check_name(size_t i, const char *name, uint16_t *ret_len)
{
	size_t len;

	if (!name)
		return refuse(pcclInvalidArgument, i, NULL, "name must not be NULL");
	len = strnlen(name, WIRE_TENSOR_NAME_MAX + 1);
	if (len == 0)
		return refuse(pcclInvalidArgument, i, NULL, "name must not be empty");
	if (len > WIRE_TENSOR_NAME_MAX)
		return refuse(pcclInvalidArgument, i, name,
			"name has more than %u bytes, which is the limit", WIRE_TENSOR_NAME_MAX);
	*ret_len = (uint16_t)len;
	return pcclSuccess;
}

static pcclResult_t check_kind(size_t i, const pcclTensorInfo_t *info)
{
	if ((uint32_t)info->datatype > WIRE_DTYPE_MAX)
		return refuse(pcclInvalidArgument, i, info->name, "datatype: there is no type %d",
			(int)info->datatype);
	if (pccl_buf_of_device(info->device_type))
		return pcclSuccess;
	if (info->device_type == pcclDeviceCuda)
		return refuse(pcclInternalError, i, info->name,
			"device_type is pcclDeviceCuda, and this library was built without CUDA: "
			"configure it with --with-cuda, or use memory of the CPU");
	return refuse(pcclInvalidArgument, i, info->name, "device_type: there is no type %d",
		(int)info->device_type);
}

/* Checks the size of a tensor and its address. before: the number of bytes of all tensors before
 * this one. */
static pcclResult_t check_size(
	size_t i, const pcclTensorInfo_t *info, uint64_t before, uint64_t *ret)
{
	uint32_t esize = wire_dtype_size[info->datatype];
	uint64_t bytes;

	if (info->count > WIRE_STATE_MAX / esize)
		return refuse(pcclInvalidArgument, i, info->name,
			"count is %zu, the limit for elements of %u bytes is %llu", info->count,
			esize, (unsigned long long)(WIRE_STATE_MAX / esize));
	bytes = info->count * esize;
	if (bytes > WIRE_STATE_MAX - before)
		return refuse(pcclInvalidArgument, i, info->name,
			"count is %zu: the tensors up to here have %llu bytes in all, the limit "
			"is %llu",
			info->count, (unsigned long long)before + bytes,
			(unsigned long long)WIRE_STATE_MAX);
	if (bytes > 0 && !info->data)
		return refuse(pcclInvalidArgument, i, info->name, "data must not be NULL");
	if (bytes > UINTPTR_MAX - (uintptr_t)info->data)
		return refuse(pcclInvalidArgument, i, info->name,
			"count: %llu bytes at this address go beyond the address space",
			(unsigned long long)bytes);
	*ret = bytes;
	return pcclSuccess;
}

/* Opens the buffer of a tensor. */
static pcclResult_t open_tensor(
	struct pccl_state *st, const pcclTensorInfo_t *info, struct pccl_tensor *t)
{
	char why[PCCL_TEXT_MAX];
	pcclResult_t r;

	if (t->bytes == 0) {
		/* Its address does not matter, so it need not be one of the device. */
		t->data = pccl_buf_host_at(t->data.at);
		return pcclSuccess;
	}
	if (t->data.kind->device == pcclDeviceCpu && !pccl_buf_is_host(t->data.at))
		return refuse(pcclInvalidArgument, t->index, t->name,
			"device_type is %d, but data is not memory of the CPU",
			(int)info->device_type);
	r = pccl_buf_open(&t->data, t->bytes, "data", &st->bufs);
	if (r == pcclSuccess)
		return r;
	pccl_fail_text(why);
	return refuse(r, t->index, t->name, "%s", why);
}

static pcclResult_t read_tensor(
	struct pccl_state *st, size_t i, const pcclTensorInfo_t *info, struct pccl_tensor *ret)
{
	uint16_t name_len = 0;
	uint64_t bytes = 0;
	pcclResult_t r = check_name(i, info->name, &name_len);

	if (r == pcclSuccess)
		r = check_kind(i, info);
	if (r == pcclSuccess)
		r = check_size(i, info, st->bytes, &bytes);
	if (r != pcclSuccess)
		return r;
	*ret = (struct pccl_tensor){.name = info->name,
		.data = {.kind = pccl_buf_of_device(info->device_type), .at = info->data},
		.count = info->count,
		.bytes = bytes,
		.index = (uint32_t)i,
		.name_len = name_len,
		.dtype = (uint16_t)info->datatype,
		.may_differ = info->allow_content_inequality};
	r = open_tensor(st, info, ret);
	if (r != pcclSuccess)
		return r;
	st->bytes += bytes;
	st->names_len += name_len;
	st->n_leaves += wire_leaf_count(bytes);
	return pcclSuccess;
}

/* Compares names in the order of the protocol: as memcmp, with the shorter name first. */
static int by_name(const void *a, const void *b)
{
	const struct pccl_tensor *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order != 0)
		return order;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Sorts the tensors and refuses equal names. Most programs give the same tensors each time, so they
 * are usually sorted already. */
static pcclResult_t sort(struct pccl_state *st)
{
	char shown[NAME_SHOWN + 4];
	size_t i = 1;

	while (i < st->n && by_name(&st->tensors[i - 1], &st->tensors[i]) < 0)
		i++;
	if (i < st->n)
		qsort(st->tensors, st->n, sizeof *st->tensors, by_name);
	for (i = 1; i < st->n; i++)
		if (strcmp(st->tensors[i - 1].name, st->tensors[i].name) == 0)
			return pccl_fail(pcclInvalidArgument,
				"infos[%u] and infos[%u] have the same name \"%s\"",
				st->tensors[i - 1].index, st->tensors[i].index,
				show(st->tensors[i].name, shown));
	return pcclSuccess;
}

static pcclResult_t reserve(struct pccl_state *st, size_t n)
{
	struct hsh_tensor_work *work;
	struct pccl_tensor *tensors;

	if (n <= st->cap)
		return pcclSuccess;
	tensors = realloc(st->tensors, n * sizeof *tensors);
	if (tensors)
		st->tensors = tensors;
	work = realloc(st->work, n * sizeof *work);
	if (work)
		st->work = work;
	if (!tensors || !work)
		return pccl_fail_memory("no memory for a table of %zu tensors", n);
	st->cap = n;
	return pcclSuccess;
}

pcclResult_t pccl_state_read(struct pccl_state *st, const pcclSharedState_t *s)
{
	bool as_before = st->n == s->count;
	pcclResult_t r;

	if (s->count > WIRE_TENSORS_MAX)
		return pccl_fail(pcclInvalidArgument,
			"shared_state->count is %zu, the limit is %u tensors", s->count,
			WIRE_TENSORS_MAX);
	if (s->count > 0 && !s->infos)
		return pccl_fail(pcclInvalidArgument, "shared_state->infos must not be NULL");
	r = reserve(st, s->count);
	if (r != pcclSuccess)
		return r;
	st->bytes = 0;
	st->names_len = 0;
	st->n_leaves = 0;
	st->n = 0; /* if this call fails, the next call must not use the half-updated table */
	for (size_t i = 0; i < s->count; i++) {
		size_t from = as_before ? st->tensors[i].index : i;

		r = read_tensor(st, from, &s->infos[from], &st->tensors[i]);
		if (r != pcclSuccess)
			return r;
	}
	st->n = s->count;
	r = sort(st);
	if (r != pcclSuccess)
		st->n = 0;
	return r;
}

void pccl_state_free(struct pccl_state *st)
{
	if (!st)
		return;
	free(st->tensors);
	free(st->work);
	free(st);
}
