/** What one request may ask of the gateway beyond `src/fhir/limits.ts` (docs/limits.md). */

/** Requests to the upstream for one request of a client. */
export const UPSTREAM_REQUESTS = 2_000
/** And for each entry of a Bundle. */
export const UPSTREAM_REQUESTS_PER_ENTRY = 20
/** Characters that the upstream may answer with for one request of a client. */
export const UPSTREAM_CHARACTERS = 64 * 1024 * 1024
/** Bytes of a response of the upstream that is looked into, unless a setting says otherwise. */
export const RESPONSE_BYTES = 16 * 1024 * 1024
/** Connections to the upstream, unless a setting says otherwise. */
export const CONNECTIONS = 64
/** Connections beside these, for the gateway's own probes: a crowd of requests says nothing about the upstream. */
export const PROBE_CONNECTIONS = 2
/** How often an idle gateway probes the upstream. */
export const PROBE_EVERY_MS = 5_000
/** How often the gateway reads the upstream's CapabilityStatement. */
export const CAPABILITIES_EVERY_MS = 600_000
/** The part of the connections that one grant has at most: a quarter. */
export const SHARE_OF_GRANT = 1 / 4
/** Requests of one grant that wait for a connection. */
export const UPSTREAM_WAITING_PER_GRANT = 256
/** The part of the time-out that a request waits for a connection at most. */
export const WAITING_TIME = 3 / 4
/** Pages of the upstream that one request looks through. */
export const UPSTREAM_PAGES = 50
/** Resources that a chain leads to, which are named in the search that it is replaced by: more would not fit into a URL. */
export const CHAIN_MATCHES = 200
/** Matches that are counted one by one: a total that the upstream gives may be of more than the caller reaches. */
export const COUNTED = 10_000
/** Care teams that are looked at to find out whose patient somebody is. */
export const CARE_TEAMS = 1_000
/** Included resources that the links of `$everything` remember, so that they are not shown again. */
export const INCLUDES_REMEMBERED = 300
/** Values in the JSON of such a response. */
export const RESPONSE_VALUES = 500_000
/** Values of granular scopes that are sent to the upstream with a search. With more it finds more, and what it finds is judged here. */
export const LIMIT_VALUES_SENT = 200
