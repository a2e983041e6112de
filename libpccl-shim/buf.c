/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/buf.h"

#include <string.h>

#include "libpccl-shim/copy.h"

/* ---- host memory */

/* Operands in host memory are published in pieces of this size. */
#define HOST_PIECE ((size_t)256 * 1024)

static pcclResult_t host_copy_in(const struct pccl_buf *b, uint64_t off, void *to, size_t n)
{
	memcpy(to, b->at + off, n);
	return pcclSuccess;
}

static pcclResult_t host_copy_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole)
{
	pccl_copy_out(b->at + off, from, n, whole);
	return pcclSuccess;
}

static pcclResult_t host_swap(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n)
{
	pccl_copy_swap(b->at + off, host, n);
	return pcclSuccess;
}

static pcclResult_t host_leaf(const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *leaf,
	uint64_t index, uint64_t *ret)
{
	*ret = leaf(b->at + off, n, index);
	return pcclSuccess;
}

static pcclResult_t host_hash(const struct pccl_buf *first, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads)
{
	(void)first;
	hsh_tensors(leaf, tensors, n, threads);
	return pcclSuccess;
}

const struct pccl_buf_kind pccl_buf_host = {
	.device = pcclDeviceCpu,
	.piece = HOST_PIECE,
	.lanes = 1,
	.copy_in = host_copy_in,
	.start_out = host_copy_out,
	.swap = host_swap,
	.leaf = host_leaf,
	.hash = host_hash,
};

/* ---- all kinds */

#define POINTER(name) &pccl_buf_##name,

static const struct pccl_buf_kind *const kinds[] = {PCCL_BUF_KINDS(POINTER) & pccl_buf_host};

const struct pccl_buf_kind *pccl_buf_of_device(pcclDeviceType_t device)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i]->device == device)
			return kinds[i];
	return NULL;
}

void pccl_buf_after_fork(void)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i]->after_fork)
			kinds[i]->after_fork();
}

bool pccl_buf_is_host(const void *at)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i]->owns && kinds[i]->owns(at) == PCCL_BUF_OWNED)
			return false;
	return true;
}

void pccl_buf_close(struct pccl_buf_call *call)
{
	while (call->uses) {
		struct pccl_buf_use *use = call->uses;

		call->uses = use->next;
		use->kind->close(use);
	}
}

pcclResult_t pccl_buf_copy_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole)
{
	pcclResult_t r = pccl_buf_start_out(b, off, from, n, whole);

	return r == pcclSuccess ? pccl_buf_finish_out(b) : r;
}

pcclResult_t pccl_buf_start_in(
	const struct pccl_buf *b, uint64_t off, void *to, size_t n, unsigned lane)
{
	return b->kind->start_in ? b->kind->start_in(b, off, to, n, lane)
				 : b->kind->copy_in(b, off, to, n);
}

pcclResult_t pccl_buf_finish_in(const struct pccl_buf *b, unsigned lane)
{
	return b->kind->finish_in ? b->kind->finish_in(b, lane) : pcclSuccess;
}

pcclResult_t pccl_buf_swap(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n)
{
	pcclResult_t r = pcclSuccess;
	uint8_t kept[4096];

	if (b->kind->swap)
		return b->kind->swap(b, off, host, n);
	for (size_t part; n > 0 && r == pcclSuccess; off += part, host += part, n -= part) {
		part = n < sizeof kept ? n : sizeof kept;
		r = pccl_buf_copy_in(b, off, kept, part);
		if (r == pcclSuccess)
			r = pccl_buf_copy_out(b, off, host, part, 0);
		if (r == pcclSuccess)
			memcpy(host, kept, part);
	}
	return r;
}

pcclResult_t pccl_buf_leaf(const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *leaf,
	uint64_t index, uint64_t *ret)
{
	return b->kind->leaf(b, off, n, leaf, index, ret);
}

static pcclResult_t hash_by_leaf(
	const struct pccl_buf *first, hsh_leaf_fn *leaf, struct hsh_tensor_work *t)
{
	struct pccl_buf b = *first;
	pcclResult_t r = pcclSuccess;

	b.at = (uint8_t *)(uintptr_t)t->data;
	for (uint64_t i = 0; i < hsh_leaf_count(t->bytes) && r == pcclSuccess; i++) {
		uint64_t off = i * HSH_LEAF, left = t->bytes - off;

		r = b.kind->leaf(
			&b, off, left < HSH_LEAF ? (size_t)left : HSH_LEAF, leaf, i, &t->leaves[i]);
	}
	t->hash = hsh_tensor(t->leaves, t->bytes);
	return r;
}

pcclResult_t pccl_buf_hash(const struct pccl_buf *first, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads)
{
	pcclResult_t r = pcclSuccess;

	if (first->kind->hash)
		return first->kind->hash(first, leaf, tensors, n, threads);
	for (size_t i = 0; i < n && r == pcclSuccess; i++)
		r = hash_by_leaf(first, leaf, &tensors[i]);
	return r;
}
