import { openStore } from '../../store/index.ts'
import { createFhirSender, openEventIds, startFeed } from '../index.ts'

/** Sends the audit records of a database to a FHIR server, until the process is killed: `<database URL> <FHIR base URL>`. */
const [databaseUrl = '', url = ''] = process.argv.slice(2)
const store = await openStore(databaseUrl)
startFeed(store, {
  name: 'feed',
  everyMs: 20,
  onError: () => {},
  onRefused: () => {},
  send: createFhirSender({
    url,
    fhirBaseUrl: 'http://fhir.test/fhir',
    ids: await openEventIds(store),
    async post(address, init) {
      const response = await fetch(address, { ...init, method: 'POST' })
      return { status: response.status, text: await response.text() }
    },
  }),
})
