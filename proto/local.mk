# SPDX-License-Identifier: MIT

wire_generated = \
	proto/admin.pb-c.c proto/admin.pb-c.h \
	proto/ccoip.pb-c.c proto/ccoip.pb-c.h \
	proto/journal.pb-c.c proto/journal.pb-c.h \
	proto/local.pb-c.c proto/local.pb-c.h

# Programs that link libwire.la must add $(PROTOBUF_C_LIBS). The shim does not, because it contains
# its own copy.
noinst_LTLIBRARIES += proto/libwire-generated.la proto/libwire.la
nodist_proto_libwire_generated_la_SOURCES = $(wire_generated)
proto_libwire_generated_la_SOURCES =
proto_libwire_generated_la_CFLAGS = $(GENERATED_CFLAGS)

proto_libwire_la_SOURCES = \
	proto/shm_queue.h \
	proto/shm_result.c proto/shm_result.h \
	proto/shm_state.c proto/shm_state.h \
	proto/shm_submit.c proto/shm_submit.h \
	proto/wire_codes.h \
	proto/wire_admin.c proto/wire_admin.h \
	proto/wire_admin_tables.c \
	proto/wire_arena.c proto/wire_arena.h \
	proto/wire_ballot.c proto/wire_ballot.h \
	proto/wire_bytes.h \
	proto/wire_dtype.h \
	proto/wire_frame.c proto/wire_frame.h \
	proto/wire_journal.c proto/wire_journal.h \
	proto/wire_limits.h \
	proto/wire_link.c proto/wire_link.h \
	proto/wire_local.c proto/wire_local.h \
	proto/wire_master.c proto/wire_master.h proto/wire_member.h proto/wire_op.h \
	proto/wire_master_tables.h \
	proto/wire_member_tables.c \
	proto/wire_names.c proto/wire_names.h \
	proto/wire_op_tables.c \
	proto/wire_plan.c proto/wire_plan.h \
	proto/wire_quant.c proto/wire_quant.h \
	proto/wire_quant_formats.c proto/wire_quant_formats.h \
	proto/wire_state.c proto/wire_state.h \
	proto/wire_sync.h \
	proto/wire_table.c proto/wire_table.h \
	proto/wire_text.c proto/wire_text.h \
	proto/wire_view.h \
	proto/wire_writer.c proto/wire_writer.h
proto_libwire_la_LIBADD = proto/libwire-generated.la

# This rule is for targets that do not use BUILT_SOURCES.
$(proto_libwire_la_OBJECTS): $(wire_generated)

BUILT_SOURCES += $(wire_generated)
CLEANFILES += $(wire_generated)
EXTRA_DIST += proto/PROTOCOL.md proto/admin.proto proto/ccoip.proto proto/journal.proto proto/local.proto
