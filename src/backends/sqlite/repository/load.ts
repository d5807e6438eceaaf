import { type ExactResource, type Fault, isResourceType, toPlain, validate } from '../../../fhir/index.ts'
import { isFailure } from '../../../fhir-api/index.ts'
import {
  formatContent,
  type LoadReport,
  type RefusedResource,
  type Repository,
  type Stored,
} from './repository.ts'

// The server serves AuditEvents from the audit trail only, so that nobody could read one that is loaded here.
const UNREADABLE: Fault = {
  path: 'AuditEvent',
  code: 'structure',
  text: 'Not imported: the server serves AuditEvents from its own audit trail, so nobody could read this one',
}

const ID = /^[A-Za-z0-9\-.]{1,64}$/

/** Writes valid resources under their own ids, or new ones, in one transaction. */
export function load(repository: Repository, resources: Iterable<unknown>): LoadReport {
  const counts = { created: 0, updated: 0, unchanged: 0 }
  const refused: RefusedResource[] = []
  let index = 0
  repository.transaction(() => {
    for (const candidate of resources) {
      const checked = check(candidate)
      if ('faults' in checked) refused.push({ index, ...checked })
      else counts[put(repository, checked.resource)]++
      index++
    }
  })
  return { ...counts, refused }
}

// Larger transactions gain little, and SQLite keeps a whole one in its write-ahead log.
const BATCH = 1_000

/** Loads resources in transactions of a bounded size. Until the last one is written, `name` is stored. */
export function loadInBatches(repository: Repository, name: string, resources: Iterable<unknown>): void {
  const { database } = repository
  database.rows(`INSERT OR REPLACE INTO setting VALUES ('load', ?)`, [name])
  const batch: unknown[] = []
  for (const resource of resources) {
    batch.push(resource)
    if (batch.length === BATCH) load(repository, batch.splice(0))
  }
  load(repository, batch)
  database.exec(`DELETE FROM setting WHERE name = 'load'`)
}

/** The name of the load that was interrupted, if any. */
export function findInterruptedLoad({ database }: Repository): string | undefined {
  const [row] = database.rows(`SELECT value FROM setting WHERE name = 'load'`, [])
  return row && String(row[0])
}

function check(candidate: unknown): { resource: ExactResource } | Omit<RefusedResource, 'index'> {
  const { resourceType, id } = (
    typeof candidate === 'object' && candidate ? candidate : {}
  ) as Partial<ExactResource>
  const type = typeof resourceType === 'string' && isResourceType(resourceType) ? resourceType : undefined
  const named = typeof id === 'string' ? id : undefined
  const refuse = (faults: readonly Fault[]) => ({ type, id: named, faults })
  if (type === undefined)
    return refuse([{ path: 'resourceType', code: 'structure', text: 'Not an R4 resource type' }])
  if (type === 'AuditEvent') return refuse([UNREADABLE])
  if (id !== undefined && !ID.test(String(id)))
    return refuse([
      { path: `${type}.id`, code: 'value', text: 'Not an id: 1 to 64 letters, digits, dots, hyphens' },
    ])
  const faults = validate(toPlain(candidate as ExactResource))
  return faults.length > 0 ? refuse(faults) : { resource: candidate as ExactResource }
}

function put(repository: Repository, resource: ExactResource): 'created' | 'updated' | 'unchanged' {
  const id = resource.id ?? repository.newId()
  const before = resource.id === undefined ? undefined : repository.find(resource.resourceType, id)
  if (before && isSame(before, resource)) return 'unchanged'
  const saved = repository.save(resource, id, before, 'PUT')
  if (isFailure(saved))
    throw new Error(`Cannot load ${resource.resourceType}/${id}: it has too many search values`)
  return before ? 'updated' : 'created'
}

function isSame(before: Stored, resource: ExactResource): boolean {
  return (
    !before.deleted && before.content === formatContent(resource, before.id, before.version, before.updated)
  )
}
