import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { listOwnFolder, readOwnFile } from '../../../core/index.ts'
import { fillExample } from './fill.ts'

const values = {
  clientId: 'an "app" </script>$&',
  secret: undefined,
  scope: 'launch patient/Patient.rs',
  redirectUri: 'http://localhost:4000/back',
  fhirBaseUrl: 'https://fhir.example/r4',
  requests: ['Patient/{patient}', 'Goal?patient={patient}'],
}

const FILLED = [
  'CLIENT_ID = "an \\"app\\" \\u003c/script>$&"',
  'SCOPE = "launch patient/Patient.rs"',
  'REDIRECT_URI = "http://localhost:4000/back"',
  'FHIR_BASE = "https://fhir.example/r4"',
  'READS = ["Patient/{patient}", "Goal?patient={patient}"]',
]

describe('fillExample', () => {
  for (const file of listOwnFolder('examples/apps')) {
    const example = readOwnFile(`examples/apps/${file}`).split('\n')
    const expected = file.startsWith('backend') ? FILLED.filter(it => !it.startsWith('REDIRECT')) : FILLED
    const findChanged = (code: string) =>
      code
        .split('\n')
        .flatMap((line, at) => (line === example[at] ? [] : [line.trim().replace('const ', '')]))

    it(`gives ${file} with the values of an app, and changes nothing else (LAB-8)`, () => {
      const code = fillExample(file, values)
      assert.equal(code.split('\n').length, example.length)
      assert.deepEqual(findChanged(code), expected)
    })

    if (file.startsWith('server'))
      it(`gives ${file} with the secret, if it is known (LAB-8)`, () => {
        const code = fillExample(file, { ...values, secret: 's3cret' })
        assert.deepEqual(findChanged(code), expected.toSpliced(1, 0, 'CLIENT_SECRET = "s3cret"'))
      })
  }
})
