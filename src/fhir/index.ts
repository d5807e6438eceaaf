/**
 * FHIR R4 words: the definitions, interactions, references, the patient compartment, the search language,
 * validation, outcomes. Pure: it stores nothing, sends nothing, and decides nothing about who may see what.
 */
export { compartmentParameters, patientsOf } from './compartment.ts'
export { isResourceType, resourceTypes, searchParameter, searchParametersOf } from './definitions.ts'
export { type Admitted, type Guard, outsideGrant, type Refused } from './guard.ts'
export { type Interaction, isPublic, type Misunderstood, type Params } from './interaction.ts'
export { namesOtherPatient } from './other-patients.ts'
export { type IssueCode, type OperationOutcome, type OutcomeIssue, outcome } from './outcome.ts'
export { parseParams } from './params.ts'
export { type EntryRequest, parseEntry } from './parse-entry.ts'
export { parseInteraction } from './parse-interaction.ts'
export type { Fault, Resource, SearchParameter, SearchParameterType } from './r4.ts'
export { parseReference, type ResourceReference } from './reference.ts'
export type { FhirRequest } from './request.ts'
export { isId } from './request-path.ts'
export type * from './search/clause.ts'
export type * from './search/entry.ts'
export { indexEntries } from './search/index-entries.ts'
export { matches, matchesClause } from './search/matches.ts'
export { normalise } from './search/normalise.ts'
export { parseSearch } from './search/parse-search.ts'
export { escapeSearchValue } from './search/split.ts'
