/**
 * The FHIR HTTP API: one implementation of every interaction on a backend that only stores and finds. `parseInteraction`
 * alone decides what a URL means, the token is verified before a byte of the body is read, each interaction is decided
 * and kept within its access, and the audit trail has the outcome before the response goes out.
 */
export { type AccessCache, computeDigest, createAccessCache } from './access/access-cache.ts'
export { type AccessCheck, createAccessCheck, findWrittenPatients } from './access/access-check.ts'
export { findThroughDocument } from './access/binaries.ts'
export { findExcludedType } from './access/excluded-types.ts'
export { findResource, type LookupContext } from './access/find-resource.ts'
export { seesAll } from './access/sees-all.ts'
export type {
  Audited,
  Awaitable,
  BackendSession,
  CollectLimit,
  EverythingTarget,
  FhirBackend,
} from './backend.ts'
export type {
  Announcement,
  BackendWrites,
  Commit,
  CommitOptions,
  CommitResult,
  Committed,
  ConditionMatch,
  LocalWrites,
  VersionedWrite,
} from './backend-writes.ts'
export { toEntryRequest } from './bundle/entry-request.ts'
export { createTurns } from './bundle/turns.ts'
export { type BundleParts, buildUrl, bundleJson, entryJson, type Link } from './bundle-json.ts'
export type { Context, Handler } from './context.ts'
export { type Failure, isFailure, toResponse } from './failure.ts'
export { handle } from './handle.ts'
export { createFhirApi, evaluateLate, type FhirApiOptions } from './http/create-fhir-api.ts'
export { addPostedParams, findNamedTypes } from './interactions/everything.ts'
export { respondWithHistory } from './interactions/history.ts'
export { respondWithPage, searchFor } from './interactions/search.ts'
export { type Cursors, createLinks, type Relation } from './paging/links.ts'
export { type Cursor, createPages, type Pages } from './paging/pages.ts'
export { type Paged, resumePage } from './paging/resume-page.ts'
export { getPath } from './path.ts'
export type { FhirRequest, History, InteractionOf, Kind, Operation, Search } from './request.ts'
export type { FhirResponse, ResponseVersion } from './response.ts'
export type { HistoryEntry, HistoryPage, SearchEntry, SearchPage } from './search-page.ts'
export type { StoredVersion } from './stored-version.ts'
