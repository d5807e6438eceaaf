import type { Reach } from '../../consent/index.ts'
import type { Names } from '../repository/names.ts'

/** What a search knows beside its clauses. */
export interface Scene {
  readonly names: Names
  readonly baseUrl: string
  /** What the caller reaches of a type by searching it. Chains, too, look only there (contract 5.3). */
  readonly reach: (type: string) => Reach
}
