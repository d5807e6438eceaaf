import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findNotes, follows, releaseChanges } from './changelog.ts'

describe('releaseChanges', () => {
  it('puts the unreleased changes under the version, below an empty heading for the next ones', () => {
    const changelog = '# Changelog\n\n## Unreleased\n\n- New\n\n## 0.1.0 (2026-01-01)\n\n- Old\n'
    assert.deepEqual(releaseChanges(changelog, '0.2.0', '2026-02-02'), {
      changelog:
        '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-02-02)\n\n- New\n\n## 0.1.0 (2026-01-01)\n\n- Old\n',
    })
  })

  it('releases nothing without changes', () => {
    assert.equal(
      releaseChanges('## Unreleased\n\n## 0.1.0 (2026-01-01)\n- Old', '0.2.0', '2026-02-02'),
      'CHANGELOG.md has no unreleased changes',
    )
    assert.match(String(releaseChanges('# Changelog', '0.2.0', '2026-02-02')), /no heading/)
  })
})

describe('findNotes', () => {
  it('is the section of the version, and of no other', () => {
    const changelog =
      '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-02-02)\n\n### Fixed\n- New\n\n## 0.1.0 (2026-01-01)\n\n- Old\n'
    assert.equal(findNotes(changelog, '0.2.0'), '### Fixed\n- New')
    assert.equal(findNotes(changelog, '0.1.0'), '- Old')
    assert.equal(findNotes(changelog, '0.2'), undefined)
    assert.equal(findNotes(changelog, '0.3.0'), undefined)
  })
})

describe('follows', () => {
  it('compares numbers, not texts', () => {
    assert(follows('0.10.0', '0.9.9'))
    assert(follows('1.0.0', '0.10.3'))
    assert(!follows('0.1.0', '0.1.0'))
    assert(!follows('0.1.0', '0.2.0'))
    assert(!follows('0.2', '0.1.0'))
    assert(!follows('v0.2.0', '0.1.0'))
  })
})
