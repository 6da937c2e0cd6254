/* header_mechanisms.h - tables made of foreign headers, which cannot be included together. */
struct header_mechanism {
    const char *name; /* NULL: the end */
    unsigned long long number;
};

extern const struct header_mechanism p11_kit_mechanisms[];
extern const struct header_mechanism nss_mechanisms[]; /* only with HAVE_NSS */
