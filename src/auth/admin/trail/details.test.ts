import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { renderDetails } from './details.ts'

/** The cells of each row. */
function readRows(details: unknown): readonly (readonly string[])[] {
  const page = String(renderDetails(details) ?? '')
  assert.doesNotMatch(page, /[{}[\]]|&quot;/)
  return [...page.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) =>
      cell
        .replace(/<\/li><li>/g, '; ')
        .replace(/<[^>]+>/g, '')
        .trim(),
    ),
  )
}

describe('the details of an audit record', () => {
  it('say in words what was before and after a change (ADMIN-24)', () => {
    const before = {
      fhirUser: 'Practitioner/1',
      admin: true,
      lockedAt: null,
      redirect_uris: ['https://a.test/cb'],
      links: [],
      scope: 'launch patient/*.rs',
    }
    const after = {
      fhirUser: 'Practitioner/2',
      admin: false,
      lockedAt: Date.UTC(2026, 10, 18, 5, 30),
      redirect_uris: ['https://a.test/cb', 'https://b.test/cb'],
      links: [{ issuer: 'https://idp.test', subject: 'g-1' }],
      scope: 'launch',
    }
    assert.deepEqual(readRows({ before, after }), [
      ['Property', 'Before', 'After'],
      ['FHIR user', 'Practitioner/1', 'Practitioner/2'],
      ['Administrator', 'Yes', 'No'],
      ['Locked at', 'None', '18-Nov-2026 05:30 UTC'],
      ['Redirect URIs', 'https://a.test/cb', 'https://a.test/cb; https://b.test/cb'],
      ['Links', 'None', 'Issuer: https://idp.test; Subject: g-1'],
      ['Scope', 'launch; patient/*.rs', 'launch'],
    ])
  })

  it('say what was added or removed, and why something was refused (ADMIN-24)', () => {
    assert.match(String(renderDetails({ before: { name: 'Growth' } })), />Removed</)
    assert.deepEqual(readRows({ after: { name: 'Growth' } }), [
      ['Property', 'Value'],
      ['Name', 'Growth'],
    ])
    const compared = [{ name: 'scope', sent: 'openid', expected: ['launch'], origin: 'registered' }]
    assert.deepEqual(readRows({ detail: 'the scope is unknown', compared }), [
      ['Property', 'Value'],
      ['Detail', 'the scope is unknown'],
      ['Compared', 'Name: scope; Sent: openid; Expected: launch; Origin: registered'],
    ])
    for (const none of [{}, { after: {} }, { before: {}, after: {} }])
      assert.equal(renderDetails(none), undefined)
  })
})
