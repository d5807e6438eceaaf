import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findIdentifierFaults } from './identifiers.ts'
import { findTypeNameFaults } from './type-names.ts'

describe('the names of exported types', () => {
  it('are different', () => {
    const sources = new Map([
      ['src/a.ts', 'export interface Grant {}\nexport type Only = 1\ninterface Own {}'],
      ['src/b.ts', 'export class Grant {}\nexport type Own = 2'],
      ['src/b.test.ts', 'export type Only = 1'],
    ])
    assert.deepEqual(findTypeNameFaults(sources), ['Grant: exported by src/a.ts and src/b.ts'])
  })
})

describe('the functions and types that a page names', () => {
  it('exist', () => {
    const sources = new Map([['src/a.ts', 'export function findGrant() {}']])
    const pages = new Map([
      ['ARCHITECTURE.md', '`findGrant`, `findToken()`, `launch`, `TokenGrant`'],
      ['docs/decisions/0001-x.md', '`findToken`'],
    ])
    assert.deepEqual(findIdentifierFaults(pages, sources), [
      'ARCHITECTURE.md: names findToken, which no source has',
      'ARCHITECTURE.md: names TokenGrant, which no source has',
    ])
  })
})
