import { describe } from 'node:test'
import { testAccess } from './access-suite.ts'
import { testBinaries } from './binary-suite.ts'
import { testBundles } from './bundle-suite.ts'
import { testSearches } from './find-suite.ts'
import { testSearchesWithin } from './search-suite.ts'
import type { TestTarget } from './target.ts'
import { testWrites } from './write-suite.ts'

/** The conformance suite of the FHIR API on a backend. Every backend passes it, except for the capabilities that its server lacks. */
export function testBackend(target: TestTarget): void {
  describe('reads and writes', () => testWrites(target))
  describe('Bundles', () => testBundles(target))
  describe('access', () => testAccess(target))
  describe('searches', () => testSearches(target))
  describe('searches and histories within a grant', () => testSearchesWithin(target))
  describe('Binaries', () => testBinaries(target))
}
