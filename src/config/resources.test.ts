import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getMcpUrl, getResourceMetadataUrl } from './resources.ts'

describe('getResourceMetadataUrl', () => {
  for (const [resource, url] of [
    ['https://ehr.example/fhir/mcp', 'https://ehr.example/.well-known/oauth-protected-resource/fhir/mcp'],
    ['http://localhost:8080/fhir', 'http://localhost:8080/.well-known/oauth-protected-resource/fhir'],
    ['https://fhir.example', 'https://fhir.example/.well-known/oauth-protected-resource'],
  ] as const)
    it(`is ${url} for ${resource}`, () => assert.equal(getResourceMetadataUrl(resource), url))
})

describe('getMcpUrl', () => {
  it('is below the FHIR base', () =>
    assert.equal(getMcpUrl({ fhirBaseUrl: 'https://fhir.example' }), 'https://fhir.example/mcp'))
})
