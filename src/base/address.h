/* Addresses of something on a network in the place of a path. */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

/* If a path that is not there is such an address, the hint of the last error becomes how to get at what it names. */
void hint_at_address(const char *path);

#endif
