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
  paging: 'a search has a link to its next page',
  sort: '_sort by any search parameter, by several',
  includes: '_include and _revinclude, also :iterate and *',
  chains: 'chained parameters and _has',
  modifiers: 'modifiers of R4: :not, :missing, :contains, :exact, :text, :above, :below',
  dates: 'dates of any precision, with every prefix, several at once',
  quantities: 'numbers and quantities with prefixes, units and implicit precision',
  'search-all-types': 'a search over several types',
  strings: 'strings by their beginning, without regard to case and accents; whole URLs',
  'bare-references': 'references by id alone, where there is one type',
  compartments: 'GET Patient/[id]/[type]',
  'whole-compartments': 'GET Patient/[id]/*',
  everything: '$everything',
  'dangling-references': 'a reference may name a resource that does not exist',
  'reference-lists': 'a search by several references, separated by commas',
  'same-responses': 'reads with 304 and _elements, and Prefer, as the embedded server has them',
  'same-refusals': 'the server refuses requests with the same status and text as the embedded server',
  'empty-server': 'no data of others',
} as const

export type Capability = keyof typeof CAPABILITIES

export interface TestResult {
  readonly title: string
  readonly needs: readonly Capability[]
  readonly result: 'passed' | 'failed' | 'not supported'
}

/** A FHIR API on a backend, for the conformance suite. */
export interface Target {
  readonly start: StartFhir
  /** The capabilities that the server does not have, each with its behaviour instead. */
  readonly lacks?: Readonly<Partial<Record<Capability, string>>>
  /** The tests that fail for now, each with the reason. */
  readonly gaps?: Readonly<Record<string, string>>
  readonly onResult?: (result: TestResult) => void
}

export type DefineTest = (title: string, test: () => Promise<void>) => void

/** Defines tests that are reported as skipped, with the reason, where the server lacks a capability that they need. */
export function needs(
  { lacks = {}, gaps = {}, onResult }: Target,
  ...needs: readonly Capability[]
): DefineTest {
  const lacking = needs.flatMap(it => (lacks[it] === undefined ? [] : [`no ${it}: ${lacks[it]}`]))
  return (title, test) => {
    const report = (result: TestResult['result']) => onResult?.({ title, needs, result })
    if (lacking.length > 0) {
      report('not supported')
      it(title, { skip: lacking.join('; ') })
    } else
      it(title, gaps[title] === undefined ? {} : { todo: gaps[title] }, async () => {
        await test().catch(error => {
          report('failed')
          throw error
        })
        report('passed')
      })
  }
}
