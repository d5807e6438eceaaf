import { it } from 'node:test'
import type { StartFhir } from '../../backends/sqlite/testing/fhir.ts'

/** Capabilities of a FHIR server that the tests of some interactions need. */
export const CAPABILITIES = {
  'update-as-create': 'PUT creates a resource under an id that the client chooses, answers 201',
  'numbered-versions': 'the versions of a resource are 1, 2, 3',
  'deleted-versions': 'a deleted resource is 410, and its versions can still be read',
  metadata: 'a CapabilityStatement',
  locations: 'a created resource is answered with Location and Last-Modified',
  validation: 'content that is not valid R4 is refused',
  history: 'the history of a resource, a type and the system, deletions included',
  'conditional-writes': 'If-None-Exist and conditional PUT, PATCH, DELETE',
  transactions: 'a Bundle of type transaction is carried out as a whole',
  decimals: 'decimals keep all their digits',
  exponents: 'decimals keep their exponent and the sign of zero',
  paging: 'a search has a link to its next page',
  sort: '_sort by any search parameter, by several',
  includes: '_include and _revinclude, also :iterate and *',
  chains: 'chained parameters and _has',
  modifiers: 'modifiers of R4: :not, :missing, :contains, :exact, :text, :above, :below',
  dates: 'dates with every prefix, several at once',
  'partial-dates': 'ge and le include the year or month that they name; ap',
  quantities: 'numbers and quantities with prefixes and units',
  'implicit-precision': 'a number stands for all numbers that round to it',
  'search-all-types': 'a search over several types',
  strings: 'strings by their beginning, without regard to case and accents; whole URLs',
  'bare-references': 'references by id alone, where there is one type',
  compartments: 'GET Patient/[id]/[type]',
  'whole-compartments': 'GET Patient/[id]/*',
  everything: '$everything',
  'dangling-references': 'a reference may name a resource that does not exist',
  'reference-lists': 'a search by several references, separated by commas',
  'us-core': 'the search parameters that US Core adds to R4',
  'same-responses': 'reads with _elements, and Prefer, as the embedded server has them',
  'etag-of-304': 'a 304 has the ETag of the version',
  'same-refusals': 'the server refuses requests with the same status and text as the embedded server',
} as const

export type Capability = keyof typeof CAPABILITIES

export interface TestResult {
  readonly title: string
  readonly needs: readonly Capability[]
  readonly result: 'passed' | 'failed' | 'not supported'
}

/** A FHIR API on a backend, for the conformance suite. */
export interface TestTarget {
  readonly start: StartFhir
  /** The capabilities that the server does not have, each with its behaviour instead. */
  readonly lacks?: Readonly<Partial<Record<Capability, string>>>
  readonly onResult?: (result: TestResult) => void
}

export type DefineTest = (title: string, test: () => Promise<void>) => void

/** Defines tests that are reported as skipped, with the reason, where the server lacks a capability that they need. */
export function needs({ lacks = {}, onResult }: TestTarget, ...needs: readonly Capability[]): DefineTest {
  const lacking = needs.flatMap(it => (lacks[it] === undefined ? [] : [`no ${it}: ${lacks[it]}`]))
  return (title, test) => {
    const report = (result: TestResult['result']) => onResult?.({ title, needs, result })
    if (lacking.length > 0) {
      report('not supported')
      it(title, { skip: lacking.join('; ') })
    } else
      it(title, async () => {
        await test().catch(error => {
          report('failed')
          throw error
        })
        report('passed')
      })
  }
}
