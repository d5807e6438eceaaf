/** A handful of records, and the FHIR-ish answers of a server that knows nothing of tokens, scopes or patients. */
export interface Entry {
  readonly resourceType: string
  readonly id: string
  readonly subject?: { readonly reference: string }
  readonly [name: string]: unknown
}

const SAMPLE: readonly Entry[] = [
  { resourceType: 'Patient', id: '1', name: [{ family: 'Okafor' }] },
  { resourceType: 'Patient', id: '2', name: [{ family: 'Lindqvist' }] },
  { resourceType: 'Condition', id: 'c1', subject: { reference: 'Patient/1' }, code: { text: 'Asthma' } },
  { resourceType: 'Condition', id: 'c2', subject: { reference: 'Patient/2' }, code: { text: 'Gout' } },
]

export const notFound = {
  resourceType: 'OperationOutcome',
  issue: [{ severity: 'error', code: 'not-found' }],
}

export class Records {
  readonly #entries = [...SAMPLE]

  read(type: string, id: string): Entry | undefined {
    return this.#entries.find(entry => entry.resourceType === type && entry.id === id)
  }

  search(type: string, { patient, _id }: { readonly [name: string]: unknown }): object {
    const found = this.#entries
      .filter(entry => entry.resourceType === type)
      .filter(entry => patient === undefined || entry.subject?.reference === `Patient/${patient}`)
      .filter(entry => _id === undefined || entry.id === _id)
    const entry = found.map(resource => ({ resource }))
    return { resourceType: 'Bundle', type: 'searchset', total: found.length, entry }
  }

  create(entry: Entry): Entry {
    const created = { ...entry, id: `n${this.#entries.length}` }
    this.#entries.push(created)
    return created
  }
}
