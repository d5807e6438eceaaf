/**
 * FHIR R4: definitions, interactions, references, the Patient compartment, the search language, patches, validation,
 * OperationOutcomes. Pure: this module stores nothing, sends nothing, and makes no access decision.
 */

export { ANY_ENTRIES, type BodyLimits, createBodyLimits } from './body-limits.ts'
export {
  findCompartmentPatients,
  findContainedPatients,
  findContentPatients,
  findReferredPatients,
  isInCompartment,
  listCompartmentParameters,
  namesOtherPatient,
  UNKNOWN_PATIENT,
} from './compartment.ts'
export { type DateRange, parseDateRange } from './date-range.ts'
export {
  findSearchParameter,
  isResourceType,
  listProfiles,
  listSearchParameters,
  resourceTypes,
} from './definitions.ts'
export {
  type EverythingType,
  findEverythingProblem,
  isInCareRange,
  listCareDateParameters,
  readCareRange,
  readPostedParams,
} from './everything.ts'
export { namesMissingResults, saysIncomplete } from './incomplete.ts'
export {
  type Interaction,
  isId,
  isPublic,
  isWriting,
  type Misunderstood,
  mayChange,
  mayWrite,
  misunderstand,
  type Params,
  toMisunderstood,
  type WriteInteraction,
} from './interaction.ts'
export {
  closeBundle,
  findJsonExcess,
  formatDigits,
  formatExact,
  parseExact,
  parseLimited,
  splitBundle,
  toPlain,
} from './json.ts'
export * as limits from './limits.ts'
export { GRANULAR_SCOPES, TOKEN_CHARACTERS } from './limits.ts'
export {
  exportOperations,
  findOperation,
  getOperationDefinition,
  listGatewayOperations,
  listOperations,
  type OperationRule,
  operations,
  type Permission,
  parseLastN,
  parsePassedOperation,
  selectLastN,
} from './operations.ts'
export {
  type Entries,
  type Entry,
  type EntryInteraction,
  failAt,
  parseEntries,
} from './parse-entries.ts'
export { findMethods, parseInteraction } from './parse-interaction.ts'
export { applyPatch, findFhirPathWrittenParts, readsStored, type WrittenPart } from './patch/apply-patch.ts'
export { isFhirPathPatch } from './patch/operations.ts'
export { type CurrentVersion, describeStaleness, isUnchanged } from './preconditions.ts'
export {
  type AnyProblem,
  createFaultsOutcome,
  createOutcome,
  type FhirProblem,
  type OperationOutcome,
  type OutcomeIssue,
  type PlainReason,
  type Refused,
} from './problem.ts'
export type { NOT_WITHIN, TOKENS } from './reasons/access.ts'
export type { CallReason } from './reasons/calls.ts'
export {
  type Because,
  describeFailed,
  FHIR_REASON_TABLES,
  FHIR_REASONS,
  type FhirFactsOf,
  type FhirReason,
  failFor,
  getFhirWords,
  isExcess,
  isFhirReason,
  isFor,
  nameGroup,
} from './reasons/reasons.ts'
export type { UPSTREAM } from './reasons/upstream.ts'
export type { IssueCode } from './reasons/words.ts'
export { parseReference, type ResourceReference } from './reference.ts'
export type { FhirRequestParts, Preconditions } from './request.ts'
export {
  acceptsJson,
  findSearchExcess,
  getAuthorizationHeader,
  type Preferences,
  parseParams,
  readPageParams,
  readPreconditions,
  readPreferences,
} from './request.ts'
export {
  findNamedBinaries,
  formatAsForm,
  type NativeContent,
  readBinary,
  readBody,
  readContent,
  readRecommendedBody,
  readResourceBody,
  readResourceBodyWithId,
  sendsContent,
  validateAhead,
  wantsContent,
} from './request-body.ts'
export type {
  Decimal,
  ExactResource,
  Resource,
  ResourceFault,
  SearchParameter,
  SearchParameterType,
} from './resource.ts'
export { isResource } from './resource.ts'
export { type BadSearch, isTooCostly, type SearchError } from './search/bad-search.ts'
export type * from './search/clause.ts'
export { createMatchTest } from './search/could-match.ts'
export { indexParameter, indexResource } from './search/index-entries.ts'
export { createMatcher, type EntryClause, matches, matchesClause } from './search/matches.ts'
export { type HistoryQuery, parseHistory } from './search/parse-history.ts'
export {
  type ParsedChains,
  parseQuery,
  type Query,
  type QueryReading,
  type SortKey,
  type TypeQuery,
} from './search/parse-query.ts'
export { parseSearch, parseUncounted, SearchSteps } from './search/parse-search.ts'
export { describeValues } from './search/path.ts'
export {
  findShape,
  type IncludeRule,
  isWhole,
  nameNeeded,
  parseInclude,
  type Shape,
  shapeResource,
  shapeResponse,
} from './search/result-parameters.ts'
export { escapeSearchValue, listAlternatives, normalize, takesAlternatives } from './search/values.ts'
export { JsonSkimmer, OMITTED, type PartialResource, readPartial } from './skim-json.ts'
export { streamContent } from './stream-content.ts'
export { validate } from './validate/validate.ts'
export { runAtOnce, runInTurns, type TooMuchWork, Work, type WorkKind } from './work.ts'
