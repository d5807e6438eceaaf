/**
 * The FHIR HTTP API: one implementation of every interaction, on a backend that only stores and finds resources. It
 * verifies the token before it reads the body, decides each interaction, limits it to the granted access, and records the
 * outcome in the audit trail before it sends the response.
 */

export { seesAll } from '../smart/index.ts'
export { type AccessCheck, findWrittenPatients } from './access/access-check.ts'
export { findThroughDocument } from './access/binaries.ts'
export {
  dependsOnTypeAlone,
  listReferences,
  listReferenceTexts,
  parseConditionalReference,
} from './access/check-references.ts'
export { checkStored, findResource, type ResourceLookup } from './access/find-resource.ts'
export { type AccessCache, createAccessCache } from './access-cache.ts'
export type {
  Announcement,
  Audited,
  Awaitable,
  BackendSession,
  BackendWrites,
  CollectLimit,
  Commit,
  CommitOptions,
  CommitResult,
  Committed,
  ConditionMatch,
  EverythingTarget,
  ExportMoment,
  ExportRange,
  ExportRelay,
  ExportRow,
  ExportSelection,
  ExportSource,
  FhirBackend,
  LocalWrites,
  RelayedStatus,
  VersionedWrite,
} from './backend.ts'
export { decideEntries, RESPONSE_TOO_LARGE } from './bundle/entry.ts'
export { type BundleParts, buildUrl, bundleJson, entryJson, type Link } from './bundle-json.ts'
export {
  AUDIT_SECTION,
  BULK_DATA,
  COMPARTMENTS,
  createSecuritySection,
  describeExport,
  describeParameters,
  describeProfiles,
  SYSTEM_INTERACTIONS,
  TYPE_INTERACTIONS,
  US_CORE_SERVER,
} from './capability-sections.ts'
export type { Context, Handler } from './context.ts'
export { toLine } from './export/line.ts'
export {
  type LocalSelection,
  type LocalSource,
  planLocalExport,
  readLocalExport,
} from './export/local.ts'
export { listPatients } from './export/rows.ts'
export type { ExportOptions, ExportOrder } from './exports.ts'
export { handle } from './handle.ts'
export { createFhirApi, evaluateLate, type FhirApiOptions } from './http/create-fhir-api.ts'
export type { CallEnd, Entrance, InnerRequest, WayIn } from './http/way-in.ts'
export { addPostedParams, findNamedTypes } from './interactions/operations.ts'
export { respondWithHistory } from './interactions/read.ts'
export { respondWithPage, searchFor } from './interactions/search.ts'
export { createOnce } from './once.ts'
export {
  type Cursor,
  type Cursors,
  createLinks,
  createPages,
  type Paged,
  type Pages,
  type Relation,
  resumePage,
} from './paging.ts'
export { watchConnection } from './presence.ts'
export {
  type CallerConnection,
  type FhirRequest,
  findExcludedType,
  getPath,
  type History,
  type InteractionOf,
  type Kind,
  type Operation,
  type Search,
  type StreamedContent,
} from './request.ts'
export { type Failure, type FhirResponse, failBroken, type ResponseVersion } from './response.ts'
export type { SearchEntry, Searchset } from './searchset.ts'
export type {
  HistoryEntry,
  HistoryPage,
  SearchPage,
  StatedVersion,
  StoredVersion,
} from './stored-version.ts'
export { toResponse } from './to-response.ts'
