/* probes.h - static probes, for bpftrace, SystemTap and gdb: an instruction that does nothing until one is set.
 *
 *   p11_proxy:draw__straight  session handle, bytes, code    a C_GenerateRandom that waited for the token
 *   p11_proxy:refill          slot, bytes, ns, code          a call to the token for the pool came back
 *   p11_proxy:drop            cause (enum pool_drop), bytes  what a pool held was thrown away, slices not counted
 *   p11_proxy:refusal         mechanism, rule (text), function (text), 1 if it is only audited
 *
 * The manual page p11-proxy(1) describes them; a new one is described there too. Never random bytes, PINs or keys.
 */
#ifndef P11_PROXY_PROBES_H
#define P11_PROXY_PROBES_H

#if HAVE_PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define PROBE(name, ...) STAP_PROBEV(p11_proxy, name, __VA_ARGS__)
#else
#define PROBE(name, ...) ((void)0)
#endif

#endif
