/**
 * FHIR R4 words: the definitions, interactions, references, the patient compartment, the search language,
 * validation, outcomes. Pure: it stores nothing, sends nothing, and decides nothing about who may see what.
 */
export { authorizationOf } from './authorization.ts'
export { binariesNamed, contentIn, type NativeContent, wantsContent } from './binary.ts'
export { type BundleBudget, openBundleBudget, RESPONSE_TOO_LARGE } from './bundle-budget.ts'
export { compartmentParameters, patientsOf } from './compartment.ts'
export type { DateRange } from './date-range.ts'
export { isResourceType, resourceTypes, searchParameter, searchParametersOf } from './definitions.ts'
export { type EverythingType, everythingProblem, postedParams } from './everything.ts'
export { digitsOf, exactText, exactTwin, parseExact, plainOf } from './exact-json.ts'
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
  findOperation,
  gatewayOperations,
  type OperationRule,
  operationDefinition,
  operations,
  operationsOn,
  type Permission,
  parsePassedOperation,
  unsupportedOperation,
} from './operations.ts'
export { containedPatients, namesOtherPatient, referredPatients, UNKNOWN_PATIENT } from './other-patients.ts'
export { type IssueCode, type OperationOutcome, type OutcomeIssue, outcome } from './outcome.ts'
export { paramsOfPage } from './page-params.ts'
export { parseParams } from './params.ts'
export { type BadBundle, type Entries, type Entry, parseEntries } from './parse-entries.ts'
export { type EntryInteraction, type EntryRequest, parseEntry } from './parse-entry.ts'
export { findMethods, parseInteraction } from './parse-interaction.ts'
export { applyPatch, readsStored } from './patch/apply-patch.ts'
export type { Patched } from './patch/failure.ts'
export { isFhirPathPatch } from './patch/operations.ts'
export { fhirPathWrittenParts, type WrittenPart } from './patch/written-parts.ts'
export { type CurrentVersion, isUnchanged, staleness } from './preconditions.ts'
export { acceptsJson, type Preferences, preconditionsOf, preferencesOf } from './preferences.ts'
export {
  type AnyProblem,
  entryFailed,
  type FhirProblem,
  isProblem,
  type Turndown,
  turndown,
  turndownOf,
} from './problem.ts'
export type { Decimal, ExactResource, Fault, Resource, SearchParameter, SearchParameterType } from './r4.ts'
export { isRecord, isResource } from './record.ts'
export { parseReference, type ResourceReference } from './reference.ts'
export { outsideGrant, type Refused } from './refused.ts'
export type { FhirRequest, Preconditions } from './request.ts'
export { formOf, readBody } from './request-body.ts'
export { isId } from './request-path.ts'
export { resourceBody, resourceBodyWithId } from './resource-body.ts'
export { careDateParameters, careRangeIn, isInCareRange } from './search/care-dates.ts'
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
export { elementsOf, isWhole, type Shape, shaped, shapedResource, shapeOf } from './search/shape.ts'
export { escapeSearchValue } from './search/split.ts'
export { securitySection } from './security-section.ts'
export { validate } from './validate/index.ts'
