import { openLocalExport, type Repository } from '../backends/sqlite/index.ts'
import { type Failed, fail, isFailure, parseJson } from '../core/index.ts'
import {
  type Failure,
  type LocalSelection,
  listPatients,
  planLocalExport,
  readLocalExport,
  toResponse,
} from '../fhir-api/index.ts'
import { findReason } from '../import/index.ts'
import type { ExportFiles } from './files.ts'

export interface ExportProgress {
  /** Resources, or files, of which so many are done. */
  readonly read: number
  readonly total: number
  readonly resources: number
}

/** Nothing is exported, for this reason. */
export interface NotExported extends Failed {
  readonly text: string
}

export interface StoreExport {
  readonly repository: Repository
  readonly clock: () => number
  readonly files: ExportFiles
  readonly selection: LocalSelection
  readonly signal: AbortSignal
  /** Records the patients whose data are in the files. It is called before the files get their names. */
  readonly recordPatients: (patients: readonly string[]) => Promise<void>
  readonly onProgress: (progress: ExportProgress) => void
}

/** Patients that are recorded at once. */
const PATIENTS_AT_ONCE = 5_000

/** Exports the data of the embedded server as they are at the start. Returns the number of resources. */
export async function exportStore(options: StoreExport): Promise<number | NotExported> {
  const { repository, clock, files, selection, signal, onProgress } = options
  const source = openLocalExport(repository, clock)
  const order = await planLocalExport(source, selection)
  if (isFailure(order)) return describe(order)
  const total = repository.count(order.types)
  const patients = new Patients(options.recordPatients)
  let read = 0
  let resources = 0
  for await (const rows of readLocalExport(source, order)) {
    if (isFailure(rows)) return describe(rows)
    signal.throwIfAborted()
    read += rows.read
    resources += rows.kept.length
    for (const row of rows.kept) {
      files.append(rows.type, row.text)
      patients.add(listPatients(row, source.baseUrl))
    }
    if (patients.isLong) await patients.record()
    onProgress({ read, total, resources })
  }
  await patients.record()
  signal.throwIfAborted()
  return files.finish({ transactionTime: new Date(order.moment.time).toISOString(), request: order.url })
}

function describe(failure: Failure): NotExported {
  return fail({ text: findReason(parseJson(String(toResponse(failure).body))) })
}

/** The patients of an export, each once. */
class Patients {
  readonly #record: StoreExport['recordPatients']
  readonly #known = new Set<string>()
  #found: string[] = []

  constructor(record: StoreExport['recordPatients']) {
    this.#record = record
  }

  get isLong(): boolean {
    return this.#found.length >= PATIENTS_AT_ONCE
  }

  add(patients: readonly string[]): void {
    for (const id of patients) {
      if (this.#known.has(id)) continue
      this.#known.add(id)
      this.#found.push(id)
    }
  }

  async record(): Promise<void> {
    const found = this.#found
    this.#found = []
    if (found.length > 0) await this.#record(found)
  }
}
