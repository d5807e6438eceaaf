import { fhirServer } from '../index.ts'

/**
 * A process for the durability test: it serves the data file that it is given, writes patient after patient over
 * HTTP, and prints the id of each when its write has been acknowledged, until it is killed.
 */
const app = await fhirServer({
  baseUrl: 'http://fhir.test/fhir',
  dataFile: process.argv[2] ?? '',
  smartConfiguration: {},
})
for (let at = 0; ; at++) {
  const id = `${process.argv[3]}-${at}`
  const reply = await app.inject({
    method: 'PUT',
    url: `/fhir/Patient/${id}`,
    headers: { 'content-type': 'application/fhir+json' },
    payload: JSON.stringify({ resourceType: 'Patient', id, active: true }),
  })
  if (reply.statusCode !== 201) process.exit(1)
  process.stdout.write(`${id}\n`)
}
