import { isFailure } from '../../core/index.ts'
import { failFor, findNamedBinaries, resourceTypes, Work } from '../../fhir/index.ts'
import { fullAccess } from '../../smart/index.ts'
import type { BackendSession, ExportRow } from '../backend.ts'
import type { ExportLevel, ExportOrder } from '../exports.ts'
import type { Failure } from '../response.ts'
import { isExported, listMembers } from './kick-off.ts'
import { type CheckRows, createPartCheck, type RowContext, selectRows } from './rows.ts'

/** The backend of this process, whose data a command exports without a request and without limits. */
export interface LocalSource extends RowContext {
  readonly session: Pick<BackendSession, 'read' | 'panelMembers' | 'rows'>
}

/** What a command exports: everything, unless these say less. */
export interface LocalSelection {
  readonly group?: string | undefined
  readonly patients?: readonly string[] | undefined
  readonly types?: readonly string[] | undefined
  /** Milliseconds: resources that were written at this time or later. */
  readonly since?: number | undefined
}

/** Rows of a part that were read, and those of them that belong to the export. */
export interface LocalRows {
  readonly type: string
  readonly read: number
  readonly kept: readonly ExportRow[]
}

/**
 * The order for an export by a command. It selects as `$export` does, and has the Binaries too: nobody could request them
 * from files.
 */
export async function planLocalExport(
  source: LocalSource,
  { group, patients, types, since }: LocalSelection,
): Promise<ExportOrder | Failure> {
  const { baseUrl, session } = source
  const level = group !== undefined ? 'group' : patients ? 'patient' : 'system'
  const members = group === undefined ? undefined : await findMembers(source, group)
  if (isFailure(members)) return members
  const unknown = await findUnknownPatient(source, patients ?? [], members)
  if (unknown) return unknown
  const possible = resourceTypes.filter(type => isPossible(source, type, level))
  const excluded = types?.find(type => !possible.includes(type))
  if (excluded !== undefined) return failFor('export-type-unsupported', { type: excluded })
  const chosen = types ? possible.filter(type => types.includes(type)) : possible
  const selected = patients ?? members
  return {
    level,
    url: `${baseUrl}${PATHS[level](group)}/$export`,
    moment: await session.rows.now(),
    // The documents, which name the Binaries, come first.
    types: [...chosen.filter(type => type !== 'Binary'), ...chosen.filter(type => type === 'Binary')],
    filters: [],
    elements: [],
    notes: [],
    ...(since !== undefined && { since }),
    ...(selected && { patients: selected }),
    ...(patients && { isOnlyPatients: true }),
  }
}

const PATHS: Readonly<Record<ExportLevel, (group: string | undefined) => string>> = {
  system: () => '',
  patient: () => '/Patient',
  group: id => `/Group/${id}`,
}

function isPossible(source: LocalSource, type: string, level: ExportLevel): boolean {
  return type === 'Binary' || isExported(source, type, level)
}

async function findMembers(
  { baseUrl, session }: LocalSource,
  id: string,
): Promise<readonly string[] | Failure> {
  const found = await session.read('Group', id)
  if (!found || (!isFailure(found) && found.deleted)) return failFor('export-group-unknown', { id })
  const group = isFailure(found) ? found : found.parse()
  return isFailure(group) ? group : listMembers(group, baseUrl)
}

async function findUnknownPatient(
  { session }: LocalSource,
  patients: readonly string[],
  members: readonly string[] | undefined,
): Promise<Failure | undefined> {
  for (const id of patients) {
    const found = await session.read('Patient', id)
    if (isFailure(found)) return found
    if (!found || found.deleted || members?.includes(id) === false)
      return failFor('export-patient-unknown', { patient: `Patient/${id}` })
  }
  return undefined
}

/** The rows of an export, type by type. A failure ends them: rows are missing then. */
export async function* readLocalExport(
  source: LocalSource,
  order: ExportOrder,
): AsyncGenerator<LocalRows | Failure> {
  const attachments = order.level === 'system' ? undefined : new Set<string>()
  const work = new Work(Number.POSITIVE_INFINITY)
  for (const type of order.types) {
    const part = { type, kind: 'output' } as const
    const isAttached = type === 'Binary' && attachments !== undefined
    // An attachment may be older than its document.
    const selection = selectRows(isAttached ? { ...order, since: 0 } : order, part)
    // A Binary has no patient: those of its document decide.
    const check: CheckRows = isAttached
      ? async rows => rows.filter(({ id }) => attachments.has(id))
      : createPartCheck(source, { access: fullAccess, work }, order, part, async () => true)
    for await (const rows of source.session.rows.read(selection, { from: 0, to: order.moment.mark })) {
      if (isFailure(rows)) return yield rows
      const kept = await check(rows)
      if (isFailure(kept)) return yield kept
      if (type === 'DocumentReference') for (const row of kept) addAttachments(row, source, attachments)
      yield { type, read: rows.length, kept }
    }
  }
}

function addAttachments(
  row: ExportRow,
  { baseUrl }: LocalSource,
  attachments: Set<string> | undefined,
): void {
  if (!attachments || !row.text.includes('Binary/')) return
  for (const id of findNamedBinaries(row.parse(), baseUrl)) attachments.add(id)
}
