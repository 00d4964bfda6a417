# Configuration of JupyterLab, next to jupyter.json: shows a notebook about the environment among the files of the project. It is
# in memory, in a folder next to this file; nothing is written into the project, and a file there with its name is shown instead.
import os

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

NAME = "environment.ipynb"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "notebook")


class Contents(AsyncLargeFileManager):
    """The files of the project, and the notebook."""

    def __init__(self, **options):
        super().__init__(**options)
        self.notebooks = AsyncLargeFileManager(root_dir=FOLDER, log=self.log)

    def shows_notebook(self, path):
        return path.strip("/") == NAME and not os.path.lexists(os.path.join(self.root_dir, NAME))

    def manager(self, path):
        return self.notebooks if self.shows_notebook(path) else super()

    async def _dir_model(self, path, content=True):
        model = await super()._dir_model(path, content=content)
        if content and not path.strip("/") and self.shows_notebook(NAME):
            model["content"].append(await self.notebooks.get(NAME, content=False))
        return model

    async def get(self, path, *more, **options):
        return await self.manager(path).get(path, *more, **options)

    async def save(self, model, path=""):
        return await self.manager(path).save(model, path)

    async def is_hidden(self, path):
        return await self.manager(path).is_hidden(path)

    async def file_exists(self, path):
        return await self.manager(path).file_exists(path)

    async def create_checkpoint(self, path):
        return await self.manager(path).create_checkpoint(path)

    async def list_checkpoints(self, path):
        return await self.manager(path).list_checkpoints(path)

    async def restore_checkpoint(self, checkpoint_id, path):
        return await self.manager(path).restore_checkpoint(checkpoint_id, path)

    async def delete_checkpoint(self, checkpoint_id, path):
        return await self.manager(path).delete_checkpoint(checkpoint_id, path)


c.ServerApp.contents_manager_class = Contents  # noqa: F821
