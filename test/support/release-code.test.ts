import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findCommit, findLastRelease } from './release-code.ts'

describe('findCommit', () => {
  const head = findCommit('HEAD')

  it('finds what git knows', { skip: head === undefined && 'not in a clone' }, () => {
    assert.match(head ?? '', /^[0-9a-f]{40}$/)
    assert.equal(findCommit(head?.slice(0, 12) ?? ''), head)
  })

  it('finds nothing by a name that git does not know, or that is an option', () => {
    assert.equal(findCommit('no-such-release'), undefined)
    assert.equal(findCommit('--all'), undefined)
  })

  it('finds a release by its version, without a tag', () => {
    const last = findLastRelease()
    if (last) assert.equal(findCommit(last.version), last.commit)
  })
})
