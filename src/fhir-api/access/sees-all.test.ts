import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Access, fullAccess, noAccess } from '../../smart/index.ts'
import { seesAll } from './sees-all.ts'

/** Everything but one permission, or one type. */
const allBut = (missing: string): Access => ({
  filterFor: (type, permission) => (permission === missing || type === missing ? [] : 'everything'),
})

describe('seesAll', () => {
  it('is for who may read and search every type, and for nobody else', () => {
    for (const access of [fullAccess, allBut('c'), allBut('d')]) assert(seesAll(access))
    for (const access of [noAccess, allBut('r'), allBut('s'), allBut('Binary')]) assert(!seesAll(access))
  })
})
