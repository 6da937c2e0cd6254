/* der.c - reading DER, one element at a time. */
#include "policy/der.h"

#define LONG_FORM        0x80u
#define LENGTH_BYTES_MAX 4u

bool der_take(struct der *in, uint8_t *tag, struct der *content)
{
    const uint8_t *bytes = in->bytes;
    size_t header = 2;
    size_t len = 0;

    if (in->len_bytes < header)
        return false;
    if (bytes[1] & LONG_FORM) {
        size_t count = bytes[1] & ~LONG_FORM;
        if (count == 0 || count > LENGTH_BYTES_MAX || in->len_bytes - header < count)
            return false;
        for (size_t i = 0; i < count; i++)
            len = len << 8 | bytes[header + i];
        header += count;
    } else {
        len = bytes[1];
    }
    if (in->len_bytes - header < len)
        return false;

    *tag = bytes[0];
    *content = (struct der){bytes + header, len};
    in->bytes += header + len;
    in->len_bytes -= header + len;
    return true;
}

bool der_expect(struct der *in, uint8_t tag, struct der *content)
{
    struct der after = *in;
    uint8_t came;

    if (!der_take(&after, &came, content) || came != tag)
        return false;
    *in = after;
    return true;
}
