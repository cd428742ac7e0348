"""Items into a directory: in parallel, one item failing alone, a chunk at a time.

Before a run
    * `facts`: what an adapter tells of itself and of its dataset.
    * `duplicates`: ids that are taken, found before anything is written.
    * `shard`: a share of a run, for one of several machines.
    * `planning`: what to store, in which chunks. `completeness`: whether all is there.
      `preflight`: what is told of that before anything is stored.
    * `estimate`: a quick look at the space. `survey`, `survey_result`: that of a dry
      run; `sample_plan`: which items it looks at; `looking`: at one, in any process,
      `lookers`: by several; `extrapolation`: what was seen, and what that says of all;
      `oddities`: what is unusual about them.

The run
    * `ingestor`: `GulpIngestor`. `chunk_bar`: the bar that it shows when called.
    * `dispatch`: tasks to workers, a few at a time, and their results to the chunks.
    * `jobs`: what workers are given and give back. `local_workers`: which of them a
      run has on one machine; `workers`: its processes. `remote`: how tasks reach
      any other; `cluster`: those of Dask; `fitness`: whether one can do the work;
      `programs`: whether it has the adapter as it is here.
    * `pool`: that workers start, and end.
      `crashes`: items that end a worker. `lingering`: those that take very long.
    * `items`: the items of an adapter, one failing without the rest.
      `adapter_errors`: what an adapter raises, in words and behind its items.
      `telling`: which item is worked on.
    * `task`: the work of one process: a slice of items into staged chunks.
      `lent_cores`: idle cores, for the video that it decodes.
    * `pieces`: chunks that several processes store together.
    * `journal`, `task_journal`: what was done, so that another run can go on;
      `resuming`: whether the items are still the same.
    * `publishing`: staged chunks get their numbers and names.
    * `records`: what is written beside the chunks.
    * `report`: what a run did, and the items that failed.

`writer` is `ChunkWriter`: one chunk at a time, without an ingestor.
"""

__all__: list[str] = []
