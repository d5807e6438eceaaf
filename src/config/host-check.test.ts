import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createHostCheck } from './derive.ts'

const LAPTOP = {
  bind: ['127.0.0.1', '::1'],
  issuerUrl: 'https://ehr.test:9000',
  fhirBaseUrl: 'http://[fd00::1]:8080/fhir',
  appUrl: 'http://localhost:8081',
  allowedHosts: ['host.docker.internal', '10.0.2.2'],
}

describe('createHostCheck', () => {
  const accepts = createHostCheck(LAPTOP)

  for (const host of ['localhost', 'LocalHost', 'app.localhost', '127.0.0.1', '127.9.9.9', '[::1]'])
    it(`accepts ${host}, which always means this host`, () => assert.ok(accepts(host)))

  for (const host of ['ehr.test', 'EHR.test', '[fd00::1]', 'host.docker.internal', '10.0.2.2'])
    it(`accepts ${host}, which is configured`, () => assert.ok(accepts(host)))

  for (const host of ['', 'evil.test', 'localhost.evil.test', 'notlocalhost', '127.0.0.1.evil.test'])
    it(`refuses ${JSON.stringify(host)}`, () => assert.ok(!accepts(host)))

  for (const host of ['0.0.0.0', '[::]', '192.168.1.1', 'ehr.test.evil.test', 'localhost.'])
    it(`refuses ${host}`, () => assert.ok(!accepts(host)))

  it('accepts every name if one bind address is not loopback', () => {
    const wide = createHostCheck({ ...LAPTOP, bind: ['127.0.0.1', '10.0.0.5'] })
    assert.ok(wide('evil.test'))
  })
})
