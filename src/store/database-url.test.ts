import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseDatabaseUrl } from './index.ts'

describe('parseDatabaseUrl', () => {
  it('accepts a path after sqlite:', () => {
    assert.deepEqual(parseDatabaseUrl('sqlite:./data/sallyport.db'), {
      dialect: 'sqlite',
      path: './data/sallyport.db',
    })
    assert.deepEqual(parseDatabaseUrl('sqlite:/var/lib/a b.db'), {
      dialect: 'sqlite',
      path: '/var/lib/a b.db',
    })
  })

  it('accepts postgres:// and postgresql://, and shows neither user nor password', () => {
    for (const scheme of ['postgres', 'postgresql']) {
      const url = `${scheme}://someone:hush@db.example:5433/sallyport?sslmode=verify-full`
      assert.deepEqual(parseDatabaseUrl(url), {
        dialect: 'postgres',
        url,
        shownAs: `${scheme}://db.example:5433/sallyport`,
      })
    }
  })

  it('accepts nothing else', () => {
    for (const text of [
      '',
      'sqlite:',
      'sqlite::memory:',
      'mysql://h/d',
      'data.db',
      'postgres:',
      'postgres://h:port/d',
    ]) {
      assert.equal(parseDatabaseUrl(text), undefined, text)
    }
  })
})
