/**
 * FHIR R4 words: the definitions, interactions, references, the patient compartment, the search language,
 * validation, outcomes. Pure: it stores nothing, sends nothing, and decides nothing about who may see what.
 */
export { getAuthorizationHeader } from './authorization.ts'
export { findNamedBinaries, type NativeContent, readContent, wantsContent } from './binary.ts'
export { type BundleBudget, openBundleBudget, RESPONSE_TOO_LARGE } from './bundle-budget.ts'
export { listCompartmentParameters, patientsOf } from './compartment.ts'
export type { DateRange } from './date-range.ts'
export { findSearchParameter, isResourceType, listSearchParameters, resourceTypes } from './definitions.ts'
export { type EverythingType, findEverythingProblem, readPostedParams } from './everything.ts'
export { exactTwin, formatDigits, formatExact, parseExact, toPlain } from './exact-json.ts'
export { type Failed, fail, isFailure } from './failure.ts'
export {
  type Interaction,
  isPublic,
  isWriting,
  type Misunderstood,
  mayWrite,
  type Params,
} from './interaction.ts'
export { findJsonExcess } from './json-excess.ts'
export { type LastN, parseLastN, selectLastN } from './last-n.ts'
export * as limits from './limits.ts'
export { GRANULAR_SCOPES, TOKEN_CHARACTERS } from './limits.ts'
export {
  describeUnsupportedOperation,
  findOperation,
  listGatewayOperations,
  listOperations,
  type OperationRule,
  operationDefinition,
  operations,
  type Permission,
  parsePassedOperation,
} from './operations.ts'
export {
  findContainedPatients,
  findReferredPatients,
  namesOtherPatient,
  UNKNOWN_PATIENT,
} from './other-patients.ts'
export { type IssueCode, type OperationOutcome, type OutcomeIssue, outcome } from './outcome.ts'
export { readPageParams } from './page-params.ts'
export { parseParams } from './params.ts'
export { type BadBundle, type Entries, type Entry, parseEntries } from './parse-entries.ts'
export { type EntryInteraction, type EntryRequest, parseEntry } from './parse-entry.ts'
export { findMethods, parseInteraction } from './parse-interaction.ts'
export { applyPatch, readsStored } from './patch/apply-patch.ts'
export type { Patched } from './patch/failure.ts'
export { isFhirPathPatch } from './patch/operations.ts'
export { findFhirPathWrittenParts, type WrittenPart } from './patch/written-parts.ts'
export { type CurrentVersion, describeStaleness, isUnchanged } from './preconditions.ts'
export { acceptsJson, type Preferences, readPreconditions, readPreferences } from './preferences.ts'
export {
  type AnyProblem,
  createEntryFailure,
  createTurndown,
  type FhirProblem,
  isProblem,
  type Turndown,
  toTurndown,
} from './problem.ts'
export type { Decimal, ExactResource, Fault, Resource, SearchParameter, SearchParameterType } from './r4.ts'
export { isRecord, isResource } from './record.ts'
export { parseReference, type ResourceReference } from './reference.ts'
export { outsideGrant, type Refused } from './refused.ts'
export type { FhirRequest, Preconditions } from './request.ts'
export { formatAsForm, readBody } from './request-body.ts'
export { isId } from './request-path.ts'
export { readResourceBody, readResourceBodyWithId } from './resource-body.ts'
export { careRangeIn, isInCareRange, listCareDateParameters } from './search/care-dates.ts'
export type * from './search/clause.ts'
export { couldMatch } from './search/could-match.ts'
export type * from './search/entry.ts'
export { type IncludeRule, parseInclude } from './search/include-rule.ts'
export { indexEntries } from './search/index-entries.ts'
export { createMatcher, matches, matchesClause } from './search/matches.ts'
export { normalise } from './search/normalise.ts'
export { type HistoryQuery, parseHistory } from './search/parse-history.ts'
export { type BadSearch, parseQuery, type Query, type SortKey } from './search/parse-query.ts'
export { parseSearch } from './search/parse-search.ts'
export { findShape, isWhole, listElements, type Shape, shapeResource, shapeResponse } from './search/shape.ts'
export { escapeSearchValue } from './search/split.ts'
export { createSecuritySection } from './security-section.ts'
export { validate } from './validate/index.ts'
