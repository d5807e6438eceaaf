import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findNewPasswordFault } from './passwords.ts'

const find = (...given: Parameters<typeof findNewPasswordFault>) => findNewPasswordFault(...given)?.text

const OWNER = { username: 'bob', displayName: 'Dr. Robert Ng-Wałęsa', brand: 'St. Mary Clinic', minLength: 8 }

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
      assert.equal(find(password, OWNER), 'use a password without the username', password)
    for (const password of [...COMMON, ...SEQUENCES])
      assert.match(
        find(password, OWNER) ?? 'accepted',
        /many people use this one|sequence of characters/,
        password,
      )
  })

  it('refuses words of the display name and the name of the service', () => {
    for (const password of ['xK4-ROBERT-7q', 'wałęsa tremp 9'])
      assert.equal(find(password, OWNER), 'use a password without a word of the display name', password)
    for (const password of ['xK4 st.mary-clinic', 'StMaryClinic-7q'])
      assert.equal(find(password, OWNER), 'use a password without the name of this service', password)
  })

  it('counts a letter with its accents as one character (ACCOUNT-3)', () => {
    const composed = 'vélocipède rôti'.normalize('NFC')
    const decomposed = composed.normalize('NFD')
    for (const password of [composed, decomposed]) {
      assert.equal(find(password, { ...OWNER, minLength: 15 }), undefined)
      assert.equal(find(password, { ...OWNER, minLength: 16 }), 'use at least 16 characters')
    }
  })

  it('accepts others, also with a short username in them', () => {
    for (const password of [
      'bobcat-river9',
      'correct horse',
      'violet lamp 88',
      'xK4-trempel',
      'dr-ng violet 7',
    ])
      assert.equal(find(password, OWNER), undefined, password)
  })
})
