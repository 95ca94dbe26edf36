/**
 * Addresses that endpoints can't use unless the operator has allowed their network. Includes every address that is not
 * globally reachable according to the IANA special-purpose registries, as well as IPv6 addresses containing an IPv4
 * address.
 *
 * Sources: IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190), IANA IPv6 address space.
 */

interface NetworkRange {
  readonly cidr: string;
  readonly source: string;
}

/** Blocks are rejected as a whole, even when they contain some globally reachable addresses. */
export const REFUSED_IPV4: readonly NetworkRange[] = [
  { cidr: '0.0.0.0/8', source: 'RFC 791, 3.2: this network; Linux connects 0.0.0.0 to itself' },
  { cidr: '10.0.0.0/8', source: 'RFC 1918: private' },
  { cidr: '100.64.0.0/10', source: 'RFC 6598: carrier-grade NAT; holds a cloud metadata service (100.100.100.200)' },
  { cidr: '127.0.0.0/8', source: 'RFC 1122, 3.2.1.3: loopback' },
  { cidr: '168.63.129.16/32', source: 'virtual machine host of a cloud, only reachable from its guests' },
  { cidr: '169.254.0.0/16', source: 'RFC 3927: link-local; holds the cloud metadata services (169.254.169.254)' },
  { cidr: '172.16.0.0/12', source: 'RFC 1918: private' },
  { cidr: '192.0.0.0/24', source: 'RFC 6890: IETF protocol assignments' },
  { cidr: '192.0.2.0/24', source: 'RFC 5737: documentation' },
  { cidr: '192.88.99.0/24', source: 'RFC 7526: 6to4 relay anycast, deprecated' },
  { cidr: '192.168.0.0/16', source: 'RFC 1918: private' },
  { cidr: '198.18.0.0/15', source: 'RFC 2544: benchmarking' },
  { cidr: '198.51.100.0/24', source: 'RFC 5737: documentation' },
  { cidr: '203.0.113.0/24', source: 'RFC 5737: documentation' },
  { cidr: '224.0.0.0/4', source: 'RFC 5771: multicast' },
  { cidr: '240.0.0.0/4', source: 'RFC 1112, 4: reserved; with 255.255.255.255, limited broadcast (RFC 8190)' },
];

/** Only global unicast addresses in 2000::/3 are allowed for IPv6 (RFC 4291, 2.4). Everything else is rejected. */
export const REFUSED_IPV6: readonly NetworkRange[] = [
  {
    cidr: '::/3',
    source:
      'not global unicast: ::, ::1 (RFC 4291), IPv4-compatible and -mapped (RFC 4291, 2.5.5), NAT64 64:ff9b::/96 ' +
      '(RFC 6052) and 64:ff9b:1::/48 (RFC 8215), discard 100::/64 (RFC 6666), dummy 100:0:0:1::/64 (RFC 9780)',
  },
  { cidr: '2001::/23', source: 'RFC 2928: IETF protocol assignments; Teredo 2001::/32 (RFC 4380), ORCHID (RFC 7343)' },
  { cidr: '2001:db8::/32', source: 'RFC 3849: documentation' },
  { cidr: '2002::/16', source: 'RFC 3056: 6to4, carries an IPv4 address' },
  { cidr: '3fff::/20', source: 'RFC 9637: documentation' },
  { cidr: '4000::/2', source: 'RFC 4291: unassigned; segment routing 5f00::/16 (RFC 9602)' },
  {
    cidr: '8000::/1',
    source: 'RFC 4291: unassigned; unique local fc00::/7 (RFC 4193), link-local fe80::/10, multicast ff00::/8',
  },
];
