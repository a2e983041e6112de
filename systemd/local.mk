# SPDX-License-Identifier: MIT
default_config = systemd/pccl-agent.conf systemd/ccoip-masterd.conf

# A file that was edited is neither overwritten nor removed.
INSTALL_DATA_HOOKS += install-config
UNINSTALL_HOOKS += uninstall-config
install-config:
	$(MKDIR_P) '$(DESTDIR)$(sysconfdir)/pccl'
	@for f in $(default_config); do \
		to='$(DESTDIR)$(sysconfdir)'/pccl/$${f##*/}; \
		test -e "$$to" || $(INSTALL_DATA) '$(srcdir)'/$$f "$$to" || exit 1; \
	done
uninstall-config:
	@for f in $(default_config); do \
		to='$(DESTDIR)$(sysconfdir)'/pccl/$${f##*/}; \
		if cmp -s '$(srcdir)'/$$f "$$to"; then rm -f "$$to" || exit 1; fi; \
	done
	@rmdir '$(DESTDIR)$(sysconfdir)/pccl' 2>/dev/null || :
.PHONY: install-config uninstall-config

units = systemd/pccl-agent.service systemd/pccl-agent.socket systemd/pccl-agent-admin.socket \
	systemd/ccoip-masterd.service

if HAVE_SYSTEMD
systemdsystemunit_DATA = $(units)
nodist_noinst_DATA = systemd/pccl.tmpfiles
CLEANFILES += $(units) systemd/pccl.tmpfiles
INSTALL_DATA_HOOKS += install-host-entries
UNINSTALL_HOOKS += uninstall-host-entries
endif

install-host-entries:
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)' '$(DESTDIR)$(tmpfilesdir)' '$(DESTDIR)$(sysctldir)'
	$(INSTALL_DATA) '$(srcdir)/systemd/pccl.sysusers' '$(DESTDIR)$(sysusersdir)/pccl.conf'
	$(INSTALL_DATA) systemd/pccl.tmpfiles '$(DESTDIR)$(tmpfilesdir)/pccl.conf'
	$(INSTALL_DATA) '$(srcdir)/systemd/pccl.sysctl' '$(DESTDIR)$(sysctldir)/60-pccl.conf'
uninstall-host-entries:
	rm -f '$(DESTDIR)$(sysusersdir)/pccl.conf' '$(DESTDIR)$(tmpfilesdir)/pccl.conf' \
		'$(DESTDIR)$(sysctldir)/60-pccl.conf'
.PHONY: install-host-entries uninstall-host-entries

EXTRA_DIST += $(default_config) systemd/pccl.sysusers systemd/pccl.sysctl systemd/pccl.tmpfiles.in \
	systemd/pccl-agent.service.in systemd/pccl-agent.socket.in \
	systemd/pccl-agent-admin.socket.in systemd/ccoip-masterd.service.in
