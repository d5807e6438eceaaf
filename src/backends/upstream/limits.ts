/** Limits of one request to the gateway, in addition to `src/fhir/limits.ts` (docs/limits.md). */

/** Characters of all responses of the upstream for one request of a client. */
export const UPSTREAM_CHARACTERS = 64 * 1024 * 1024
/** Bytes of a request body, unless a setting says otherwise. */
export const GATEWAY_BODY_BYTES = 16 * 1024 * 1024
/** Bytes of an inspected response of the upstream, unless a setting says otherwise. */
export const RESPONSE_BYTES = 16 * 1024 * 1024
/** Bytes of a streamed response of the upstream, and the time for it. */
export const STREAM_BYTES = 1024 * 1024 * 1024
export const STREAM_MS = 30 * 60 * 1000
/** Time in which the upstream receives content that still arrives from the client, which may take as long to send it. */
export const CONTENT_MS = 120_000
/** Bytes that one request of a client reads in responses whose long strings are left out. */
export const SKIMMED_BYTES = 512 * 1024 * 1024
/** Bytes of a string that is left out of a resource which is too large to be inspected. */
export const LONG_STRING = 64 * 1024
/** Bytes of a string that is left out of a page of several resources, as a part of the largest inspected response. */
export const LONG_STRING_OF_PAGE = 1 / 2
/** A response that shows a limited caller nothing of a resource is sent after a multiple of this time. */
export const UNSEEN_MS = 500
/** The same for a Binary, which no search finds by its patient: HAPI may take 0.5 s for one of 16 MB. */
export const UNSEEN_BINARY_MS = 2_000
/** How long a read that shows a limited caller nothing may wait for content. */
export const UNSEEN_READ_MS = 200
/** Connections to the upstream, unless a setting says otherwise. */
export const CONNECTIONS = 64
/** Further connections for the gateway's own probes, which must not wait for requests. */
export const PROBE_CONNECTIONS = 2
/** How often an idle gateway probes the upstream. */
export const PROBE_EVERY_MS = 5_000
/** How often the gateway reads the upstream's CapabilityStatement. */
export const CAPABILITIES_EVERY_MS = 600_000
/** How soon it does so again after it could not read it. */
export const CAPABILITIES_RETRY_MS = 10_000
/** How long a start waits for the CapabilityStatement. Requests do not wait for it. */
export const START_MS = 1_000
/** The largest part of the connections that one grant may use. */
export const SHARE_OF_GRANT = 1 / 4
/** Requests of one grant that wait for a connection. */
export const UPSTREAM_WAITING_PER_GRANT = 256
/** The largest part of the time-out that a request may wait for a connection. */
export const WAITING_TIME = 3 / 4
/** Versions that are read to record what a DELETE has deleted unchecked. */
export const LOST_VERSIONS = 10
/** Pages of the upstream that one request reads. */
export const UPSTREAM_PAGES = 50
/** Values of a list in one search: patients of a panel, targets of a chain. Longer lists of patients are several searches. */
export const LIST_VALUES = 300
/** Searches for the clauses of granular scopes. With more, the gateway filters the response itself. */
export const PORTIONS = 12
/** Resources that the gateway itself finds for the reverse includes of a page: as many as HAPI returns. */
export const REVERSE_INCLUDES = 1_000
/** Patients of a panel that are listed, if the upstream follows no chains. */
export const LISTED_PATIENTS = 10_000
/** Matches that are counted one by one: the upstream's total may include resources outside the access. */
export const COUNTED = 10_000
/** Care teams that are read to find panel membership. */
export const CARE_TEAMS = 1_000
/** Included resources that the links of `$everything` record, so that they are not shown again. */
export const INCLUDES_REMEMBERED = 300
/** Values in the JSON of an inspected response. */
export const RESPONSE_VALUES = 500_000

/** Resources that a search of a bulk export asks for. */
export const EXPORT_PAGE = '200'
/** Patients of one search of a bulk export. */
export const EXPORT_PATIENTS_AT_ONCE = 20
/** Resources that are counted one by one for a limited caller, to divide a bulk export into files. */
export const EXPORT_COUNTED = 2_000
/** Versions of a page of a history that is read for the deletions of a bulk export. */
export const EXPORT_VERSIONS = 50
