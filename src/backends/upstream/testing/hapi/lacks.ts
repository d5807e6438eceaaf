import type { TestTarget } from '../../../../fhir-api/testing/target.ts'

/** The capabilities of the conformance suite that HAPI FHIR (JPA starter 8.8.0, default settings) does not have. */
export const HAPI_LACKS: NonNullable<TestTarget['lacks']> = {
  validation: 'HAPI parses content, and does not validate it; unreadable content is 400',
  exponents: '1.0e3 becomes 1000',
  'partial-dates': 'ge and le leave a named year or month out; ap is 400',
  'implicit-precision': 'a number stands for itself',
  'search-all-types': 'a search without a type is 400',
  'whole-compartments': 'HAPI has no compartment searches',
  'dangling-references': 'a reference to an absent resource is 400',
  'etag-of-304': 'a 304 has no ETag',
  'us-core': 'without a package of US Core, HAPI refuses these parameters',
  'same-refusals': 'HAPI has its own texts, and reads _history/01 as version 1',
}
