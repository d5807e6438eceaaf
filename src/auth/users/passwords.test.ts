import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findNewPasswordFault } from './passwords.ts'

describe('the rules of new passwords', () => {
  const NAME = ['bobbob12', 'Bob12bob!']
  const COMMON = ['Summer2026!', 'Welcome2026', '2026Winter', 'P@ssw0rd2026!', 'Hospital-26', 'sallyport1']
  const SEQUENCES = [
    'aaaaaaaa',
    'abababab',
    'abcdefgh1',
    'qwertz123',
    'asdfghjkl1!',
    '9876543210',
    'aaaabbbb!',
  ]

  it('refuses names, common words and sequences', () => {
    for (const password of NAME)
      assert.equal(findNewPasswordFault(password, 'bob'), 'use a password without the username', password)
    for (const password of [...COMMON, ...SEQUENCES])
      assert.match(
        findNewPasswordFault(password, 'bob') ?? 'accepted',
        /many people use this one|sequence of characters/,
        password,
      )
  })

  it('accepts others, also with a short username in them', () => {
    for (const password of ['bobcat-river9', 'correct horse', 'violet lamp 88', 'xK4-trempel'])
      assert.equal(findNewPasswordFault(password, 'bob'), undefined, password)
  })
})
